//! A placement problem: the buffers, and the memory there is for them.

use super::Buffer;

/// The buffers to place in one arena.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// The buffers. A [`Solution`](super::Solution) lists their offsets in this order.
    pub buffers: Vec<Buffer>,
    /// The bytes of the arena. With a capacity, the first placement that fits it will do and none that fits is an
    /// error; without one, the placement is made as low as the effort allows.
    pub capacity: Option<u64>,
}
