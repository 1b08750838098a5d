//! Why a chain has no solution.

use std::fmt;

/// Why [`Tradeoff::new`](super::Tradeoff::new) gives no solution. Stages are named by their index in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// The sizes of all stages add up to 2^62 bytes or more.
    TooLarge {
        /// The stage at which the sum is too high.
        stage: usize,
    },
    /// The costs of all stages, times the number of stages, are 2^62 or more: so high the longest sequence may be.
    TooCostly {
        /// The stage at which the sum is too high.
        stage: usize,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::TooLarge { stage } => {
                write!(f, "the sizes of the stages add up to 2^62 bytes or more at stage {stage}")
            }
            ChainError::TooCostly { stage } => write!(
                f,
                "the costs of the stages are too high at stage {stage}: the sum of all, times the number of stages, must \
                 be below 2^62; use a larger unit"
            ),
        }
    }
}

impl std::error::Error for ChainError {}
