//! The CPU: kernels in Rust, one file for each family of layers.
//!
//! `unsafe` is in what lends steps their slices of the arena (`memory`, `step`), in the threads (`crew`, `parallel`), and in the innermost
//! loops of products and convolutions (`microkernel`, `vector`, `gather`, `product`, `narrow`, `winograd`, `convolution`). All other kernels are safe.
//!
//! To add a layer, write its file and a row in `forward` and `backward` below.

mod activation;
mod affine;
mod arithmetic;
mod batchnorm;
mod bounds;
pub(crate) mod broadcast;
mod channels;
mod concat;
mod conv;
mod conv_transpose;
mod convolution;
mod correlation;
mod crew;
mod depthwise;
mod direct;
mod dropout;
mod gather;
mod groupnorm;
mod layernorm;
mod layernorm2d;
mod linear;
mod loss;
mod memory;
mod microkernel;
mod moments;
mod narrow;
mod normalize;
mod optimizer;
mod parallel;
mod permute;
mod pool;
mod product;
mod scale;
mod sliced_loss;
mod softmax;
mod step;
mod sums;
mod upsample;
mod vector;
mod winograd;

use std::ops::Range;

use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::layernorm::Over;
use plimsoll_plan::schedule::{Part, Role, StepKind};

use crate::device::{Arguments, Device};
use crate::error::Error;
use crate::program::Program;
use bounds::Bounds;
use crew::Crew;
use memory::Memory;
use step::{Claims, Step};

/// The most threads that the CPU is given: with more, a step's parts are too small to be worth a thread's while.
pub const MAX_THREADS: usize = 256;

/// The CPU as a device.
pub struct Cpu {
    crew: Crew,
}

impl Cpu {
    /// The CPU with as many threads as it runs at once, or as `RAYON_NUM_THREADS` says.
    pub fn new() -> Cpu {
        let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
        let threads = asked.filter(|threads| *threads > 0);
        let threads = threads.or_else(|| std::thread::available_parallelism().ok().map(|threads| threads.get()));
        // Where the system gives no threads, the caller's own does the work.
        Cpu::with_threads(threads.unwrap_or(1)).unwrap_or_else(|_| Cpu { crew: Crew::alone() })
    }

    /// The CPU with so many threads, but no more than [`MAX_THREADS`]. Results do not depend on how many. None is the
    /// caller's.
    ///
    /// # Errors
    /// Where the system gives no threads.
    pub fn with_threads(threads: usize) -> Result<Cpu, Error> {
        // Miri, which would interpret every thread's waiting, sees threads in the tests of `crew` and `parallel`.
        let threads = if cfg!(miri) { 1 } else { threads.min(MAX_THREADS) };
        Crew::new(threads).map(|crew| Cpu { crew })
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu::new()
    }
}

/// The CPU's arena.
pub struct CpuArena(Memory);

/// A program with the account of slices that its steps hand out, and the activations that are done with the steps before them.
pub struct CpuProgram {
    program: Program,
    claims: Claims,
    activations: Vec<Option<Bounds>>,
}

impl AsRef<Program> for CpuProgram {
    fn as_ref(&self) -> &Program {
        &self.program
    }
}

impl Device for Cpu {
    type Arena = CpuArena;
    type Prepared = CpuProgram;

    fn name(&self) -> String {
        "the CPU".to_string()
    }

    fn allocate(&mut self, bytes: u64) -> Result<CpuArena, Error> {
        Memory::new(bytes).map(CpuArena).ok_or_else(|| Error::OutOfMemory { device: self.name(), bytes })
    }

    fn prepare(&mut self, program: Program) -> Result<CpuProgram, Error> {
        program.check_sound()?;
        let claims = Claims::new(program.regions.len());
        let activations = bounds::activations_after(&program);
        Ok(CpuProgram { program, claims, activations })
    }

    fn upload(&mut self, arena: &mut CpuArena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        arena.0.bytes_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn download(&mut self, arena: &CpuArena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.copy_from_slice(&arena.0.bytes()[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn run(
        &mut self,
        program: &mut CpuProgram,
        arena: &mut CpuArena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        let CpuProgram { program, claims, activations } = program;
        assert!(arguments.batch <= program.batch, "the batch is larger than planned");
        self.crew.run(|| {
            let mut index = steps.start;
            while index < steps.end {
                let activation = activations[index].filter(|_| index + 1 < steps.end);
                // SAFETY: `prepare` checked that operands do not overlap at the planned batch; a smaller one makes them
                // smaller. That they lie in this arena is checked when they are taken.
                let step = unsafe { Step::new(program, index, &mut arena.0, claims, arguments) };
                run_step(&step.within(activation.unwrap_or(Bounds::NONE)));
                index += if activation.is_some() { 2 } else { 1 };
            }
        });
        Ok(())
    }
}

fn run_step(step: &Step) {
    let program = step.program();
    match step.kind() {
        StepKind::Forward { node } | StepKind::Recompute { node } => forward(&program.node(node).layer, step, node),
        StepKind::Backward { node, part } => backward(&program.node(node).layer, step, node, part),
        StepKind::Loss => loss::loss(step),
        StepKind::SlicedLoss { node } => sliced_loss::loss(step, node),
        StepKind::Accumulate { .. } => step.pair(Role::OutputGradient, Role::InputGradient(0)).par_map(|x| x),
        StepKind::ClipGradNorm => optimizer::clip_grad_norm(step),
        StepKind::Update { .. } => optimizer::update(step),
        StepKind::UpdateRows { node } => match &program.node(node).layer {
            Layer::Linear(layer) => linear::update_rows(layer, step, node),
            Layer::Conv(layer) => conv::update_rows(layer, step, node),
            Layer::ConvTranspose(layer) => conv_transpose::update_rows(layer, step, node),
            other => unreachable!("{other:?} is not updated by rows"),
        },
    }
}

/// One row for each layer: its forward kernel.
fn forward(layer: &Layer, step: &Step, node: usize) {
    match layer {
        Layer::Linear(layer) => linear::forward(layer, step),
        Layer::Conv(layer) => conv::forward(layer, step),
        Layer::ConvTranspose(layer) => conv_transpose::forward(layer, step),
        Layer::BatchNorm(layer) => batchnorm::forward(layer, step),
        Layer::LayerNorm(layer) if layer.over == Over::Channels => layernorm2d::forward(layer, step),
        Layer::LayerNorm(layer) => layernorm::forward(layer, step),
        Layer::GroupNorm(layer) => groupnorm::forward(layer, step),
        Layer::Pool(layer) => pool::forward(layer, step),
        Layer::AdaptivePool(layer) => pool::adaptive_forward(layer, step),
        Layer::Upsample(layer) => upsample::forward(layer, step),
        Layer::Dropout(layer) => dropout::forward(layer, step, node),
        Layer::Activation(layer) => activation::forward(layer, step),
        Layer::Softmax(layer) => softmax::forward(layer, step),
        Layer::Permute(layer) => permute::forward(layer, step),
        Layer::Concat(layer) => concat::forward(layer, step),
        Layer::Normalize(layer) => normalize::forward(layer, step),
        Layer::Scale(_) => scale::forward(step),
        // Another shape of what is there already: the planner makes no step of it.
        Layer::View(_) | Layer::Parameter(_) => unreachable!("a view has no steps"),
        Layer::Arithmetic(layer) => arithmetic::forward(*layer, step),
        Layer::Affine(layer) => affine::forward(layer, step),
    }
}

/// One row for each layer: its backward kernel.
fn backward(layer: &Layer, step: &Step, node: usize, part: Part) {
    match layer {
        Layer::Linear(layer) => linear::backward(layer, step, part),
        Layer::Conv(layer) => conv::backward(layer, step, part),
        Layer::ConvTranspose(layer) => conv_transpose::backward(layer, step, part),
        Layer::BatchNorm(_) => batchnorm::backward(step),
        Layer::LayerNorm(layer) if layer.over == Over::Channels => layernorm2d::backward(step),
        Layer::LayerNorm(layer) => layernorm::backward(layer, step),
        Layer::GroupNorm(layer) => groupnorm::backward(layer, step),
        Layer::Pool(layer) => pool::backward(layer, step),
        Layer::AdaptivePool(layer) => pool::adaptive_backward(layer, step),
        Layer::Upsample(layer) => upsample::backward(layer, step),
        Layer::Dropout(layer) => dropout::backward(layer, step, node),
        Layer::Activation(layer) => activation::backward(layer, step),
        Layer::Softmax(layer) => softmax::backward(layer, step),
        Layer::Permute(layer) => permute::backward(layer, step),
        Layer::Concat(layer) => concat::backward(layer, step),
        Layer::Normalize(layer) => normalize::backward(layer, step),
        Layer::Scale(_) => scale::backward(step),
        // Another shape of what is there already: the planner makes no step of it.
        Layer::View(_) | Layer::Parameter(_) => unreachable!("a view has no steps"),
        Layer::Arithmetic(layer) => arithmetic::backward(*layer, step),
        Layer::Affine(layer) => affine::backward(layer, step),
    }
}
