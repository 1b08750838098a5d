//! CUDA: a card of NVIDIA's as a device, one file for each family of kernels.
//!
//! The kernels are CUDA C++ in `runtime/kernels`, compiled to PTX that is committed; libraries are loaded when the program
//! runs, so that it builds without a toolkit and without a card. The arena is one plain allocation of exactly the planned
//! bytes; every operand is its base and an offset of the plan. All work is done in order on one stream. A step allocates
//! nothing, and waits for the card's work once, when the host reads the loss. See `docs/cuda.md`.
//!
//! To add a layer, write its kernels, its file, and a row in `forward` and `backward` below.

mod activation;
mod arena;
mod arithmetic;
mod batchnorm;
mod card;
mod channels;
mod convolution;
mod dropout;
mod kernels;
mod layernorm2d;
mod limits;
mod linear;
mod loss;
mod optimizer;
mod pool;
mod product;
mod rownorm;
mod sliced_loss;
mod softmax;
mod step;

use std::ops::Range;
use std::sync::Arc;

use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::layernorm::Over;
use plimsoll_plan::schedule::{Part, StepKind};

pub use arena::CudaArena;

use crate::device::{Arguments, Device, DriverMemory};
use crate::error::Error;
use crate::program::Program;
use card::Card;
use kernels::Kernels;
use product::Blas;
use rownorm::Rows;
use step::Step;

/// A card of NVIDIA's as a device.
pub struct Cuda {
    blas: Option<Blas>,
    kernels: Kernels,
    card: Arc<Card>,
}

impl Cuda {
    /// The card of that number, from 0.
    ///
    /// # Errors
    /// Where there is no driver or no such card, where either is too old for the kernels, and what else the driver refuses.
    pub fn new(ordinal: usize) -> Result<Cuda, Error> {
        let card = Card::new(ordinal)?;
        let kernels = Kernels::load(&card)?;
        let blas = Blas::new(&card);
        Ok(Cuda { blas, kernels, card })
    }

    /// The card with products of matrices by our own kernel, even where cuBLAS is installed.
    pub fn without_cublas(self) -> Cuda {
        Cuda { blas: None, ..self }
    }

    /// Whether products of matrices are left to cuBLAS, which is used where it is installed.
    pub fn uses_cublas(&self) -> bool {
        self.blas.is_some()
    }
}

impl Device for Cuda {
    type Arena = CudaArena;
    type Prepared = Program;

    fn name(&self) -> String {
        self.card.name().to_string()
    }

    fn allocate(&mut self, bytes: u64) -> Result<CudaArena, Error> {
        self.card.bind()?;
        CudaArena::new(&self.card, bytes)
    }

    fn prepare(&mut self, program: Program) -> Result<Program, Error> {
        program.check_sound()?;
        limits::check(&program)?;
        Ok(program)
    }

    fn upload(&mut self, arena: &mut CudaArena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.card.bind()?;
        arena.upload(offset, bytes)
    }

    fn download(&mut self, arena: &CudaArena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.card.bind()?;
        arena.download(offset, bytes)
    }

    fn run(
        &mut self,
        program: &mut Program,
        arena: &mut CudaArena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        assert!(arguments.batch <= program.batch, "the batch is larger than planned");
        self.card.bind()?;
        steps.into_iter().try_for_each(|index| run_step(&Step::new(self, program, index, arena, arguments)))
    }

    fn driver_memory(&self, arena: &CudaArena) -> Option<DriverMemory> {
        Some(arena.memory())
    }
}

fn run_step(step: &Step) -> Result<(), Error> {
    let program = step.program();
    match step.kind() {
        StepKind::Forward { node } | StepKind::Recompute { node } => forward(&program.node(node).layer, step, node),
        StepKind::Backward { node, part } => backward(&program.node(node).layer, step, node, part),
        StepKind::Loss => loss::loss(step),
        StepKind::SlicedLoss { node } => sliced_loss::loss(step, node),
        StepKind::Accumulate { .. } => arithmetic::accumulate(step),
        StepKind::ClipGradNorm => optimizer::clip_grad_norm(step),
        StepKind::Update { .. } => optimizer::update(step),
        StepKind::UpdateRows { node } => match &program.node(node).layer {
            Layer::Linear(layer) => linear::update_rows(layer, step, node),
            Layer::Conv(layer) => convolution::conv_update_rows(layer, step, node),
            Layer::ConvTranspose(layer) => convolution::transpose_update_rows(layer, step, node),
            other => unreachable!("{other:?} is not updated by rows"),
        },
    }
}

/// One row for each layer: what its forward step starts.
fn forward(layer: &Layer, step: &Step, node: usize) -> Result<(), Error> {
    match layer {
        Layer::Linear(layer) => linear::forward(layer, step),
        Layer::Conv(layer) => convolution::conv_forward(layer, step),
        Layer::ConvTranspose(layer) => convolution::transpose_forward(layer, step),
        Layer::BatchNorm(layer) => batchnorm::forward(layer, step),
        Layer::LayerNorm(layer) if layer.over == Over::Channels => layernorm2d::forward(layer, step),
        Layer::LayerNorm(layer) => rownorm::forward(&Rows::of_layer(layer, step), step),
        Layer::GroupNorm(layer) => rownorm::forward(&Rows::of_groups(layer, step), step),
        Layer::Pool(layer) => pool::forward(layer, step),
        Layer::AdaptivePool(layer) => pool::adaptive_forward(layer, step),
        Layer::Upsample(layer) => pool::upsample_forward(layer, step),
        Layer::Dropout(layer) => dropout::forward(layer, step, node),
        Layer::Activation(layer) => activation::forward(layer, step),
        Layer::Softmax(layer) => softmax::forward(layer, step),
        Layer::Permute(layer) => arithmetic::permute_forward(layer, step),
        Layer::Concat(layer) => arithmetic::concat_forward(layer, step),
        Layer::Normalize(layer) => channels::normalize_forward(layer, step),
        Layer::Scale(_) => channels::scale_forward(step),
        // Another shape of what is there already: the planner makes no step of it.
        Layer::View(_) | Layer::Parameter(_) => unreachable!("a view has no steps"),
        Layer::Arithmetic(layer) => arithmetic::forward(*layer, step),
        Layer::Affine(layer) => arithmetic::affine_forward(layer, step),
    }
}

/// One row for each layer: what its backward step starts.
fn backward(layer: &Layer, step: &Step, node: usize, part: Part) -> Result<(), Error> {
    match layer {
        Layer::Linear(layer) => linear::backward(layer, step, part),
        Layer::Conv(layer) => convolution::conv_backward(layer, step, part),
        Layer::ConvTranspose(layer) => convolution::transpose_backward(layer, step, part),
        Layer::BatchNorm(_) => batchnorm::backward(step),
        Layer::LayerNorm(layer) if layer.over == Over::Channels => layernorm2d::backward(step),
        Layer::LayerNorm(layer) => rownorm::backward(&Rows::of_layer(layer, step), step),
        Layer::GroupNorm(layer) => rownorm::backward(&Rows::of_groups(layer, step), step),
        Layer::Pool(layer) => pool::backward(layer, step),
        Layer::AdaptivePool(layer) => pool::adaptive_backward(layer, step),
        Layer::Upsample(layer) => pool::upsample_backward(layer, step),
        Layer::Dropout(layer) => dropout::backward(layer, step, node),
        Layer::Activation(layer) => activation::backward(layer, step),
        Layer::Softmax(layer) => softmax::backward(layer, step),
        Layer::Permute(layer) => arithmetic::permute_backward(layer, step),
        Layer::Concat(layer) => arithmetic::concat_backward(layer, step),
        Layer::Normalize(layer) => channels::normalize_backward(layer, step),
        Layer::Scale(_) => channels::scale_backward(step),
        // Another shape of what is there already: the planner makes no step of it.
        Layer::View(_) | Layer::Parameter(_) => unreachable!("a view has no steps"),
        Layer::Arithmetic(layer) => arithmetic::backward(*layer, step),
        Layer::Affine(layer) => arithmetic::affine_backward(layer, step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{AnyDevice, best};

    /// On machines with a driver and on those without.
    #[test]
    fn a_machine_without_a_card_is_no_panic() {
        match Cuda::new(0) {
            Ok(cuda) => assert!(cuda.name().starts_with("CUDA device 0")),
            Err(Error::NoCuda { problem }) => {
                assert!(!problem.is_empty());
                assert!(matches!(best(), Ok(AnyDevice::Cpu(_))));
            }
            Err(other) => assert!(best().is_err(), "{other}"),
        }
    }

    /// Trainers may go from thread to thread.
    #[test]
    fn devices_and_arenas_can_be_sent() {
        fn is_send<T: Send>() {}
        is_send::<Cuda>();
        is_send::<CudaArena>();
    }
}
