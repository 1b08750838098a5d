//! A launch: the blocks of a grid, at the same time on the processors of this machine.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::Block;
use crate::faults::Fault;
use crate::memory::Global;
use crate::program::Program;

/// A kernel with all that it needs to run.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub program: &'a Program,
    /// The blocks along each axis.
    pub grid: [u32; 3],
    /// The threads of a block along each axis; 1024 at most.
    pub block: [u32; 3],
    /// The kernel's parameters, each at its offset.
    pub parameters: Vec<u8>,
    /// Bytes of shared memory beyond those that the kernel declares.
    pub shared_bytes: u32,
    /// Global memory.
    pub global: &'a Global,
    /// Whether the last thread of a block goes first, and the last block before the first.
    pub reversed: bool,
    /// The number of the launch, where it is to look for races between blocks.
    pub races: Option<u32>,
    /// The most instructions of a warp.
    pub limit: u64,
}

impl Launch<'_> {
    /// The threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// Runs all blocks, and gives the instructions that all threads ran. Of several faults it gives that of the first block, or of the
/// last when reversed.
pub fn run(launch: &Launch) -> Result<u64, Box<Fault>> {
    let blocks = launch.grid.iter().map(|blocks| u64::from(*blocks)).product();
    if blocks == 1 {
        return Block::new(launch).run(0);
    }
    let instructions = AtomicU64::new(0);
    let fault = (0..blocks).into_par_iter().map_init(
        || Block::new(launch),
        |block, number| {
            let result = block.run(if launch.reversed { blocks - 1 - number } else { number });
            instructions.fetch_add(*result.as_ref().unwrap_or(&0), Ordering::Relaxed);
            result.err()
        },
    );
    match fault.find_map_first(|fault| fault) {
        Some(fault) => Err(fault),
        None => Ok(instructions.into_inner()),
    }
}
