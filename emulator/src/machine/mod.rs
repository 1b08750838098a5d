//! What runs a kernel: a grid of blocks, at the same time; a block of warps, each until it waits; a warp of 32 threads, which go through
//! the program together as long as they go the same way.

mod block;
mod grid;
mod registers;
mod warp;

pub use block::Block;
pub use grid::{Launch, run};
pub use registers::{ALL, Lanes, Register, Registers, Value, WARP, binary, lanes, map, ternary, unary};
pub use warp::Warp;
