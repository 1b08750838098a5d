//! What can go wrong while a network runs, in words that name the place, the value and the remedy.

use plimsoll_plan::shape::DType;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device has no kernel for a layer.
    #[error("{device} can't run {step}")]
    Unsupported {
        /// The device.
        device: &'static str,
        /// The step, in the plan's words.
        step: String,
    },
    /// The device has not as much memory as the plan needs.
    #[error(
        "{device} has no {bytes} bytes free, which the plan needs in one piece\n\
         help: use a smaller batch, or end other programs that use the memory"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// The arena's length.
        bytes: u64,
    },
    /// A card has not as much free memory as the plan needs.
    #[error(
        "{device} has {free} bytes free, but the plan needs {bytes} in one piece\n\
         help: use a smaller batch, or end other programs that use the card"
    )]
    LowMemory {
        /// The device.
        device: String,
        /// The arena's length.
        bytes: u64,
        /// What the driver says is free.
        free: u64,
    },
    /// There is no card, or no driver for one.
    #[error("CUDA can't be used: {problem}\nhelp: use `Cpu::new()`, or `device::best()`, which takes what there is")]
    NoCuda {
        /// What is missing.
        problem: String,
    },
    /// A driver that does not know what the kernels are written in.
    #[error(
        "the driver is for CUDA {driver}, but the kernels need {needed}\nhelp: install a newer driver, or use `Cpu::new()`"
    )]
    OldDriver {
        /// The version of CUDA that the driver is for.
        driver: String,
        /// The oldest that will do.
        needed: String,
    },
    /// A card that can't run the kernels.
    #[error("{device} has compute capability {capability}, but the kernels need {needed}\nhelp: use `Cpu::new()`")]
    OldCard {
        /// The device.
        device: String,
        /// What it has.
        capability: String,
        /// The least that will do.
        needed: String,
    },
    /// A failure that the device reports.
    #[error("{device}: {message}")]
    Device {
        /// The device.
        device: String,
        /// Its own words.
        message: String,
    },
    /// A trainer of a network that is declared for inference alone.
    #[error("`{network}` is not trained: it has no `#[train(...)]`")]
    NotTrained {
        /// The network.
        network: String,
    },
    /// More or fewer inputs than the network has.
    #[error(
        "`{network}` declares {expected} as the number of its inputs, but {given} were given: pass a tuple of slices in declared order"
    )]
    InputCount {
        /// The network.
        network: String,
        /// How many it declares.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// Elements of another type.
    #[error("{name} must be {expected}, but {given} were given")]
    ElementType {
        /// The input, or the targets.
        name: String,
        /// The declared type.
        expected: DType,
        /// The type given.
        given: DType,
    },
    /// A number of elements that makes no whole samples.
    #[error("{name} has {length} elements, which is no whole number of samples of {elements} elements each")]
    Length {
        /// The input, or the targets.
        name: String,
        /// The elements given.
        length: usize,
        /// The elements of a sample.
        elements: usize,
    },
    /// Inputs and targets of different numbers of samples.
    #[error("{name} has {given} samples, but the first input has {expected}")]
    Samples {
        /// The input, or the targets.
        name: String,
        /// The samples of the first input.
        expected: usize,
        /// The samples given.
        given: usize,
    },
    /// A batch of no samples, or of more than were planned for.
    #[error("a batch of {given} samples: this plan takes from 1 to {planned}, the batch that the network declares")]
    Batch {
        /// The samples given.
        given: usize,
        /// The samples planned for.
        planned: usize,
    },
    /// A target that is no class.
    #[error(
        "the target of sample {sample} is {target}, but the classes are 0 to {last}{ignored}", last = classes - 1,
        ignored = match ignore_index { 0.. => String::new(), i => format!(" (or {i}, to leave a sample out)") }
    )]
    Target {
        /// The sample, from 0.
        sample: usize,
        /// The target given.
        target: i32,
        /// How many classes the network's output has.
        classes: usize,
        /// The target that does not count.
        ignore_index: i32,
    },
    /// A batch to train on of which no target counts.
    #[error(
        "every target of this batch is `ignore_index` ({ignore_index}): nothing to learn from it\nhelp: leave the batch out"
    )]
    NothingToLearn {
        /// The target that does not count.
        ignore_index: i32,
    },
    /// A batch to train on that is too small for batch normalization.
    #[error(
        "`{layer}` normalizes each channel over the batch, but a batch of {batch} sample has only one value per channel when \
         training\nhelp: use a larger batch; if this is the last one of an epoch, drop it (`drop_last`)"
    )]
    OneValue {
        /// The layer's path, or its kind where it has none.
        layer: String,
        /// The samples given.
        batch: usize,
    },
    /// A setting that makes no sense.
    #[error("{problem}\nhelp: {help}")]
    Argument {
        /// What is wrong, with the value given.
        problem: String,
        /// What to do about it.
        help: String,
    },
    /// A plan that no planner made, or that was changed since.
    #[error("the plan is damaged: {problem}\nhelp: plan the network anew")]
    DamagedPlan {
        /// What is wrong with it.
        problem: String,
    },
    /// A loss that is no number, or infinite.
    #[error(
        "the loss of step {step} is {loss}: training has diverged, and the weights are spoiled\n\
         help: go back to a checkpoint; try a smaller learning rate, or `clip_grad_norm`, and look for such numbers in the batch"
    )]
    Loss {
        /// The step, from 1.
        step: u64,
        /// What it is.
        loss: f32,
    },
    /// A name that no parameter has.
    #[error("`{network}` has no parameter `{name}`{suggestion}")]
    NoParameter {
        /// The network.
        network: String,
        /// The name asked for.
        name: String,
        /// The nearest name.
        suggestion: String,
    },
    /// Values for a parameter of another size.
    #[error("`{name}` has {expected} elements, but {given} were given")]
    ParameterLength {
        /// The parameter.
        name: String,
        /// Its elements.
        expected: u64,
        /// The elements given.
        given: usize,
    },
    /// A checkpoint that could not be written or read.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::Error),
    /// Data that could not be read.
    #[error(transparent)]
    Data(#[from] crate::data::Error),
}
