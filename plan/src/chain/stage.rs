//! A part of a chain.

/// A part of a network between two values that everything passes through: its input and its output.
///
/// The input is the output of the stage before. That of the first stage is held all the time, and no size counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stage {
    /// What a forward pass costs, in a unit of the caller's.
    pub forward_cost: u64,
    /// What the backward pass costs, in the same unit.
    pub backward_cost: u64,
    /// Bytes of the output.
    pub output: u64,
    /// Bytes of the output's gradient. It lives from the next stage's backward pass to this one's; that of the last
    /// stage is made when this stage's backward pass starts.
    pub output_gradient: u64,
    /// Bytes that the backward pass reads beside the input and the output.
    pub saved: u64,
    /// The most bytes at once during a forward pass that keeps nothing within the stage: the output counts, the input
    /// does not.
    pub forward_peak: u64,
    /// The most bytes at once during a forward pass that keeps all: what is saved and the output count, the input does
    /// not.
    pub saving_peak: u64,
    /// The most bytes at once during the backward pass: what is saved, the output and the gradients of output, input and
    /// parameters count, the input does not.
    pub backward_peak: u64,
    /// Bytes of the gradients of parameters that stay to the end, because they are to be clipped together. 0 where each
    /// parameter is updated at once, and where gradients are there all the time.
    pub parameter_gradients: u64,
}
