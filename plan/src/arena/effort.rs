//! How hard to try.

/// How much work [`place`](super::place) may do. Work is counted, not timed, so that the same problem has the same
/// placement on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effort {
    /// How often each order is changed to place earlier what did not fit.
    pub rounds: u32,
    /// The nodes of the exact search: each places one buffer. At 0 there is no search.
    pub nodes: u64,
    /// The most buffers of a problem that is searched: the time for a node grows with them.
    pub buffers: usize,
    /// A height that is low enough: once it is reached, no lower one is looked for.
    pub enough: u64,
}

impl Effort {
    /// The greedy orders alone.
    pub const GREEDY: Effort = Effort { rounds: 0, nodes: 0, buffers: 0, enough: 0 };
    /// For use within a procedural macro, which is compiled without optimization: for few buffers some milliseconds.
    pub const EXPANSION: Effort = Effort { rounds: 16, nodes: 4_000, buffers: 800, enough: 0 };
    /// Enough for problems that are known as hard: some seconds, with optimization.
    pub const THOROUGH: Effort = Effort { rounds: 100, nodes: 10_000_000, buffers: 2_000, enough: 0 };
}
