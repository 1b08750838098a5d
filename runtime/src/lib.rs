//! Runs Plimsoll's plans: trainers, predictors and devices.
//!
//! A [`Program`] is a planned schedule made ready to run; a [`Device`] allocates one arena of exactly the planned bytes and
//! runs programs in it.

pub mod cpu;
pub mod device;
pub mod element;
pub mod error;
pub mod philox;
pub mod program;

pub use cpu::Cpu;
pub use device::{Arguments, Device};
pub use error::Error;
pub use program::Program;
