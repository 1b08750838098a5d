//! Recomputation in a chain: which values a training step keeps until their backward pass, and which it drops and
//! computes once more, such that the step fits a number of bytes at the least cost.
//!
//! A chain is a list of [stages](Stage); the output of each is the input of the next. Each stage runs forward and later,
//! in reverse order, backward. [`Tradeoff`] finds the cheapest sequences of [operations](Operation) for all limits of
//! memory at once; [`simulate()`] runs a sequence operation by operation and shares no code with what made it.
//!
//! The method is that of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous
//! chains: how to train deep neural networks with limited memory" (2019, arXiv:1911.13214). It is optimal among sequences
//! that are *persistent*, where what is kept for a backward pass stays until that pass, and *nested*, where until then only
//! later stages run forward. If gradients are no larger than their values and parameters are updated at once, tests find no
//! persistent sequence that is better.
//!
//! ```
//! use plimsoll_plan::chain::{Effort, Keeps, Operation, Stage, Tradeoff};
//!
//! // Three equal stages. Each keeps 3 bytes beside its output of 1 byte.
//! let stage = Stage {
//!     forward_cost: 1,
//!     backward_cost: 2,
//!     output: 1,
//!     output_gradient: 1,
//!     saved: 3,
//!     forward_peak: 1,
//!     saving_peak: 4,
//!     backward_peak: 6,
//!     parameter_gradients: 0,
//! };
//! let tradeoff = Tradeoff::new(&[stage; 3], 20, Effort::EXPANSION)?;
//!
//! // All kept: 4 + 4 bytes wait while the last stage runs backward in 6.
//! let all = tradeoff.within(14).expect("everything fits");
//! assert_eq!((all.cost, all.peak), (9, 14));
//!
//! // In 11 bytes the first stage runs twice: its output alone is held while the others run, 1 + 4 + 6 bytes.
//! let solution = tradeoff.within(11).expect("recomputation fits");
//! assert_eq!((solution.cost, solution.peak), (10, 11));
//! assert_eq!(solution.operations[0], Operation::Forward { stage: 0, keeps: Keeps::Input });
//!
//! // With both outputs held in turn, 1 + 1 + 6 bytes. Nothing is below that.
//! assert_eq!(tradeoff.least_memory(), 7);
//! assert!(tradeoff.within(6).is_none());
//! # Ok::<(), plimsoll_plan::chain::ChainError>(())
//! ```

mod error;
mod least;
mod merge;
mod operation;
mod ranges;
mod simulate;
mod stage;
mod table;
mod tradeoff;

pub use error::ChainError;
pub use operation::{Keeps, Operation};
pub use simulate::{Fault, simulate};
pub use stage::Stage;
pub use tradeoff::{Effort, Solution, Tradeoff};
