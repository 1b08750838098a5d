//! Runs Plimsoll's plans: trainers, predictors and devices.
//!
//! A [`Program`] is a planned schedule made ready to run; a [`Device`] allocates one arena of exactly the planned bytes and
//! runs programs in it.

mod any_device;
pub mod checkpoint;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod data;
pub mod device;
mod early_stopping;
pub mod element;
pub mod error;
mod init;
pub mod inputs;
pub mod learning_rate;
mod losses;
pub mod metrics;
pub mod philox;
mod predictor;
pub mod program;
pub mod proof;
mod session;
mod suggest;
mod trainer;

pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
pub use device::{Arguments, Device};
pub use early_stopping::{EarlyStopping, Verdict};
pub use error::Error;
pub use inputs::{Inputs, Slice};
pub use metrics::Metrics;
pub use predictor::Predictor;
pub use program::Program;
pub use trainer::Trainer;
