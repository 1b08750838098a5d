//! How fast the convolutions of VGG-16 are, beside products of matrices of the same sizes by the crate `gemm`.
//!
//! ```text
//! cargo bench --bench convolutions
//! ```
//!
//! For each convolution of a training step at batch 4: the forward pass, the input's gradient and the weight's gradient, on
//! two threads. Ours has the plan's own operands and lays out the columns of the image itself; `gemm` has its matrices laid
//! out already, columns and all, so that it does the product alone. The two take turns, and of each the fastest run counts.

#[path = "../tests/networks/mod.rs"]
#[allow(dead_code)]
mod networks;

use std::time::Instant;

use networks::vgg16::Vgg16;
use plimsoll::device::Arguments;
use plimsoll::plan::layers::Layer;
use plimsoll::plan::schedule::{Part, StepKind};
use plimsoll::runtime::program::Program;
use plimsoll::{Cpu, Device, Network};

const THREADS: usize = 2;
const BATCH: usize = 4;
const RUNS: usize = 3;

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(THREADS).build_global().expect("threads");
    let plan = Vgg16::graph().batch(BATCH as u64).plan().expect("a plan");
    let program = Program::training(&plan).expect("a network that trains");
    let instructions = program.instructions.clone();
    let graph = program.graph.clone();
    let mut cpu = Cpu::with_threads(THREADS).expect("threads");
    let mut arena = cpu.allocate(plan.peak_bytes()).expect("memory");
    // No number is zero or subnormal.
    let numbers: Vec<u8> =
        (0..plan.peak_bytes() / 4).flat_map(|i| (((i * 7919) % 1009 + 1) as f32 / 5e3).to_le_bytes()).collect();
    cpu.upload(&mut arena, 0, &numbers).expect("an upload");
    drop(numbers);
    let mut prepared = cpu.prepare(program).expect("a sound plan");
    let arguments = Arguments { batch: BATCH, pass: 0, update: 1, learning_rate: 0.0, seed: 1 };

    println!("GFLOP/s on {THREADS} threads, and the share of what `gemm` reaches\n");
    println!("| convolution | forward | share | input gradient | share | weight gradient | share |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for (node, layer) in graph.nodes.iter().enumerate() {
        let Layer::Conv(conv) = &layer.layer else { continue };
        let steps = [
            StepKind::Forward { node },
            StepKind::Backward { node, part: Part::Inputs },
            StepKind::Backward { node, part: Part::Parameters },
        ];
        let mut cells = Vec::new();
        for kind in steps {
            let Some(index) = instructions.iter().position(|step| step.kind == kind) else {
                cells.extend([String::new(), String::new()]);
                continue;
            };
            let (input, output) = (&instructions[index].inputs[0], &instructions[index].output);
            let maps = conv.out_channels as usize;
            let rows = input.shape.0[0] as usize * conv.window.taps() as usize;
            let positions = output.elements() as usize / maps * BATCH;
            let sizes = match kind {
                StepKind::Forward { .. } => [maps, positions, rows],
                StepKind::Backward { part: Part::Inputs, .. } => [rows, positions, maps],
                _ => [maps, rows, positions],
            };
            let mut product = Product::new(sizes);
            let [mut ours, mut theirs] = [f64::INFINITY; 2];
            for _ in 0..RUNS {
                let start = Instant::now();
                cpu.run(&mut prepared, &mut arena, index..index + 1, &arguments).expect("a step");
                ours = ours.min(start.elapsed().as_secs_f64());
                let start = Instant::now();
                product.run();
                theirs = theirs.min(start.elapsed().as_secs_f64());
            }
            let operations = 2.0 * sizes.iter().map(|size| *size as f64).product::<f64>();
            cells.extend([format!("{:.0}", operations / ours / 1e9), format!("{:.2}", theirs / ours)]);
        }
        let shape = |shape: &[u64]| shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        let input = &graph.value_types(&layer.inputs)[0];
        println!("| {} to {} | {} |", shape(&input.shape.0), conv.out_channels, cells.join(" | "));
    }
}

/// A product of matrices in memory, row by row.
struct Product {
    sizes: [usize; 3],
    left: Vec<f32>,
    right: Vec<f32>,
    result: Vec<f32>,
}

impl Product {
    fn new([m, n, k]: [usize; 3]) -> Product {
        let numbers = |count: usize| (0..count).map(|i| (i % 1009 + 1) as f32 / 5e3).collect();
        Product { sizes: [m, n, k], left: numbers(m * k), right: numbers(k * n), result: vec![0.0; m * n] }
    }

    fn run(&mut self) {
        let [m, n, k] = self.sizes;
        let [left, right] = [self.left.as_ptr(), self.right.as_ptr()];
        let result = self.result.as_mut_ptr();
        let threads = gemm::Parallelism::Rayon(THREADS);
        let [columns_of_left, columns_of_right] = [k as isize, n as isize];
        // SAFETY: the matrices are of these sizes, row by row.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                result,
                1,
                columns_of_right,
                false,
                left,
                1,
                columns_of_left,
                right,
                1,
                columns_of_right,
                0.0,
                1.0,
                false,
                false,
                false,
                threads,
            );
        }
    }
}
