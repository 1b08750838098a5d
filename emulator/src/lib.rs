#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(target_os = "linux")]
mod client;
pub mod driver;
pub mod faults;
mod fused;
pub mod instructions;
pub mod machine;
pub mod memory;
pub mod program;
pub mod ptx;

#[cfg(target_os = "linux")]
pub use client::{LoadError, Session, load_cublas, session};
pub use memory::Accounting;
