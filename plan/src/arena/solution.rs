//! A placement: an offset for every buffer.

/// Where every buffer lies, and how good that is known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The offset of every buffer, in the order of the problem.
    pub offsets: Vec<u64>,
    /// The bytes of the arena: the largest end of a buffer, its size rounded up to its alignment.
    pub height: u64,
    /// The most bytes live at any one time. No placement is lower.
    pub lower_bound: u64,
    /// Whether it is proven that no placement is lower than this one.
    pub optimal: bool,
    /// The search's nodes that were spent: 0 if a greedy order was good enough.
    pub nodes: u64,
    /// How the placement was found.
    pub method: Method,
}

impl Solution {
    /// How far the height is above the lower bound, as a ratio: 1.0 is perfect.
    pub fn ratio(&self) -> f64 {
        if self.lower_bound == 0 { 1.0 } else { self.height as f64 / self.lower_bound as f64 }
    }
}

/// How a placement was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// By placing the buffers one after another, in this order, with no second thoughts.
    Greedy(&'static str),
    /// From the bottom of the arena up, this order deciding which buffer takes a place.
    Skyline(&'static str),
    /// By the bounded exact search.
    Search,
}
