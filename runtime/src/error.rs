//! What can go wrong while a network runs, in words that name the place, the value and the remedy.

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
    #[error("{device} has no {bytes} bytes free, which the plan needs in one piece")]
    OutOfMemory {
        /// The device.
        device: String,
        /// The arena's length.
        bytes: u64,
    },
}
