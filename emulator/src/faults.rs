//! What a kernel does wrong, and where.

use std::fmt;

/// A mistake of a kernel, before it is known where the kernel made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mistake {
    /// An access that lies, in whole or part, outside of every allocation or variable.
    OutOfBounds {
        /// The space: `global`, `shared`, `local` or `parameter`.
        space: &'static str,
        /// `load`, `store` or `atomic`.
        access: &'static str,
        /// Its address.
        address: u64,
        /// Its bytes.
        size: usize,
        /// What lies nearest.
        nearest: String,
    },
    /// An access at an address that is no multiple of its size.
    Misaligned {
        /// The space.
        space: &'static str,
        /// `load`, `store` or `atomic`.
        access: &'static str,
        /// Its address.
        address: u64,
        /// Its bytes.
        size: usize,
    },
    /// A read of memory that nothing was written to.
    Uninitialized {
        /// The space.
        space: &'static str,
        /// Its address.
        address: u64,
        /// Its bytes.
        size: usize,
        /// Where that lies.
        within: String,
    },
    /// Two threads of a block touch the same shared memory, at least one writes, and no barrier stands between.
    Race {
        /// The offset in shared memory.
        address: u64,
        /// The other thread's number in the block, where it is a single one.
        other: Option<u32>,
        /// What the other did, and what this one does.
        how: &'static str,
    },
    /// Two blocks touch the same global memory in one launch, and at least one writes.
    RaceOfBlocks {
        /// The address.
        address: u64,
        /// The other block's number in the grid, where it is a single one.
        other: Option<u32>,
        /// What the other did, and what this one does.
        how: &'static str,
    },
    /// A barrier that not all threads of the block reach together.
    DivergentBarrier(String),
    /// A shuffle or vote whose threads do not come together, or that reads a thread which takes no part.
    DivergentWarp(String),
    /// The kernel called `trap`.
    Trap,
    /// The kernel ran longer than it may.
    TooLong(u64),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::OutOfBounds { space, access, address, size, nearest } => {
                write!(f, "{access} of {size} bytes at {address:#x} is outside of {space} memory: {nearest}")
            }
            Mistake::Misaligned { space, access, address, size } => {
                write!(f, "{access} of {size} bytes at {address:#x} in {space} memory is misaligned")
            }
            Mistake::Uninitialized { space, address, size, within } => {
                write!(f, "load of {size} bytes at {address:#x} from {space} memory that was never written: {within}")
            }
            Mistake::Race { address, other, how } => {
                write!(f, "race in shared memory at {address:#x}: {how}, ")?;
                match other {
                    Some(other) => write!(f, "the other being thread {other}, with no barrier between"),
                    None => write!(f, "the others being several threads, with no barrier between"),
                }
            }
            Mistake::RaceOfBlocks { address, other, how } => {
                write!(f, "race of blocks in global memory at {address:#x}: {how}, ")?;
                match other {
                    Some(other) => write!(f, "the other being block {other} of the grid"),
                    None => write!(f, "the others being several blocks"),
                }
            }
            Mistake::DivergentBarrier(how) => write!(f, "divergent barrier: {how}"),
            Mistake::DivergentWarp(how) => write!(f, "divergent warp: {how}"),
            Mistake::Trap => write!(f, "the kernel trapped"),
            Mistake::TooLong(limit) => write!(f, "a warp ran more than {limit} instructions"),
        }
    }
}

/// A mistake of a kernel with the place where it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub mistake: Mistake,
    /// The kernel.
    pub kernel: String,
    /// The line of the PTX.
    pub line: u32,
    /// The file and line of the source, where the PTX says so.
    pub source: Option<(String, u32)>,
    /// The block.
    pub block: [u32; 3],
    /// The thread.
    pub thread: [u32; 3],
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { mistake, kernel, line, source, block: [bx, by, bz], thread: [tx, ty, tz] } = self;
        write!(f, "kernel `{kernel}`, PTX line {line}")?;
        if let Some((file, line)) = source {
            write!(f, " ({file}:{line})")?;
        }
        write!(f, ", block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz}): {mistake}")
    }
}
