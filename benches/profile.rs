//! Where the time of a training step goes: for each kind of step and shape, the milliseconds of all such steps together.
//!
//! ```text
//! cargo bench --bench profile -- resnet18 64
//! ```
//!
//! Each step of the plan is run and timed alone, on two threads, on random numbers; of several runs the fastest counts.

#[path = "../tests/networks/mod.rs"]
mod networks;

use std::collections::BTreeMap;
use std::time::Instant;

use networks::resnet50::ResNet50;
use networks::vgg16::Vgg16;
use networks::{LeNet, Mlp, ResNet18};
use plimsoll::device::Arguments;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::schedule::{Role, StepKind};
use plimsoll::runtime::program::{Instruction, Program};
use plimsoll::{Cpu, Device, Network};

const THREADS: usize = 2;
const RUNS: u64 = 10;
/// The most lines of the table of shapes.
const LINES: usize = 40;

fn main() {
    // Cargo passes flags of its own.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let name = arguments.first().map_or("resnet18", |name| name);
    let (graph, batch) = match name {
        "mlp" => (Mlp::graph(), 64),
        "lenet" => (LeNet::graph(), 64),
        "resnet18" => (ResNet18::graph(), 64),
        "resnet50" => (ResNet50::graph(), 4),
        "vgg16" => (Vgg16::graph(), 4),
        unknown => panic!("there is no `{unknown}`: there are mlp, lenet, resnet18, resnet50 and vgg16"),
    };
    let batch = arguments.get(1).map_or(batch, |batch| batch.parse().expect("a batch"));
    let times = profile(graph, batch);
    println!("{name}, batch {batch}: {:.3} ms\n", times.iter().map(|(_, time)| time).sum::<f64>() * 1e3);
    print(times.iter().map(|(label, time)| (label.split(':').next().unwrap_or(label), *time)), usize::MAX);
    print(times.iter().map(|(label, time)| (&**label, *time)), LINES);
}

/// Every step's label and least time.
fn profile(graph: Graph, batch: u64) -> Vec<(String, f64)> {
    let plan = graph.batch(batch).plan().expect("a plan");
    let program = Program::training(&plan).expect("a network that trains");
    let labels: Vec<String> = program.instructions.iter().map(|step| label(&program, step)).collect();
    let mut cpu = Cpu::with_threads(THREADS).expect("threads");
    let mut arena = cpu.allocate(plan.peak_bytes()).expect("memory");
    let mut least = vec![f64::INFINITY; labels.len()];
    let numbers: Vec<u8> =
        (0..plan.peak_bytes() / 4).flat_map(|i| (((i * 7919) % 1009) as f32 / 5e3 - 0.1).to_le_bytes()).collect();
    cpu.upload(&mut arena, 0, &numbers).expect("an upload");
    let targets = program.instructions.iter().find_map(|step| step.operand(Role::Target)).expect("targets");
    let targets = program.region(targets.buffer);
    let mut prepared = cpu.prepare(program).expect("a sound plan");
    for run in 0..RUNS {
        let arguments = Arguments { batch: batch as usize, pass: run, update: run + 1, learning_rate: 1e-6, seed: 1 };
        for (step, least) in least.iter_mut().enumerate() {
            if step == 0 {
                // The first class everywhere.
                cpu.upload(&mut arena, targets.offset, &vec![0; targets.bytes(batch as usize)]).expect("an upload");
            }
            let start = Instant::now();
            cpu.run(&mut prepared, &mut arena, step..step + 1, &arguments).expect("a step");
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    labels.into_iter().zip(least).collect()
}

/// What a step does, and after a colon on which shapes.
fn label(program: &Program, step: &Instruction) -> String {
    let kind = |node: usize| program.node(node).layer.rule().kind();
    let shapes = || format!("{:?} -> {:?}", step.inputs[0].shape.0, step.output.shape.0);
    match step.kind {
        StepKind::Forward { node } => format!("{} forward: {}", kind(node), shapes()),
        StepKind::Backward { node, part } => format!("{} backward ({part:?}): {}", kind(node), shapes()),
        StepKind::Update { .. } => format!("update: {:?}", step.output.shape.0),
        other => format!("{other:?}").split_whitespace().next().unwrap_or_default().to_string(),
    }
}

/// Sums by label, the largest first.
fn print<'a>(times: impl Iterator<Item = (&'a str, f64)>, most: usize) {
    let mut sums: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (label, time) in times {
        let (sum, count) = sums.entry(label).or_default();
        (*sum, *count) = (*sum + time, *count + 1);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
    for (label, (sum, count)) in sums.into_iter().take(most) {
        println!("{:10.3} ms {count:4} x {label}", sum * 1e3);
    }
    println!();
}
