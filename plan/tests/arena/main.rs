//! Placement, as a caller sees it.

mod brute_force;
mod known;
mod random;
mod tiling;
mod training;
mod validator;

use plimsoll_plan::arena::{Buffer, Lifespan};

/// A buffer that may lie anywhere.
fn buffer(lower: u32, upper: u32, size: u64) -> Buffer {
    Buffer { lifespan: Lifespan::new(lower, upper), size, alignment: 1 }
}
