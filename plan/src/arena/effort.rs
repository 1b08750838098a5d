//! How hard to try.

/// How much work [`place`](super::place) may do. Work is counted, not timed, so that the same problem has the same
/// placement on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effort {
    /// The nodes of the exact search: each places one buffer. At 0 there is no search.
    pub nodes: u64,
}

impl Effort {
    /// The greedy orders alone.
    pub const GREEDY: Effort = Effort { nodes: 0 };
    /// For use within a procedural macro, which is compiled without optimization.
    pub const EXPANSION: Effort = Effort { nodes: 5_000 };
    /// Ample for problems that are known as hard.
    pub const THOROUGH: Effort = Effort { nodes: 20_000_000 };
}
