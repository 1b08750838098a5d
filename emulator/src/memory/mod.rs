//! The memories of the device: global memory, made of allocations; shared memory of a block; local memory of a thread.
//!
//! Every byte carries a mark that says whether it was ever written. Addresses of allocations are never used twice, and stand apart,
//! so that an address past an end, or one that was freed, meets nothing.

mod allocation;
mod global;
mod local;
mod shared;
mod visits;

pub use allocation::Allocation;
pub use global::{Accounting, Global, OutOfMemory, uninitialized};
pub use local::Local;
pub use shared::{Shared, Visitor};
pub use visits::{Caller, Meeting, Visits};

/// Where generic addresses of shared memory begin.
pub const SHARED_WINDOW: u64 = 0x1_0000_0000;
/// Where generic addresses of local memory begin.
pub const LOCAL_WINDOW: u64 = 0x2_0000_0000;
/// Where addresses of global memory begin.
pub const GLOBAL_START: u64 = 0x10_0000_0000;
