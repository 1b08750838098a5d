//! A buffer: a run of bytes that is needed for a span of time.

use std::fmt;

/// The steps at which a buffer must keep its contents: from `lower` up to, but without, `upper`.
///
/// Being half-open, `0..2` and `2..3` do not meet: the second may take the bytes of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifespan {
    /// The first step at which the buffer is live.
    pub lower: u32,
    /// The first step at which it no longer is.
    pub upper: u32,
}

impl Lifespan {
    /// The steps `lower..upper`.
    pub const fn new(lower: u32, upper: u32) -> Lifespan {
        Lifespan { lower, upper }
    }

    /// Whether some step belongs to both.
    pub const fn overlaps(self, other: Lifespan) -> bool {
        self.lower < other.upper && other.lower < self.upper
    }
}

impl fmt::Display for Lifespan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.lower, self.upper)
    }
}

/// One buffer to place: when it is live, how many bytes it takes, and of what its offset must be a multiple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// When the buffer is live.
    pub lifespan: Lifespan,
    /// Its bytes. A buffer of no bytes is placed at offset 0 and disturbs no other.
    pub size: u64,
    /// Its offset is a multiple of this, and it takes its size rounded up to a multiple of this. At least 1.
    pub alignment: u64,
}

impl Buffer {
    /// The bytes the buffer takes in the arena: its size, rounded up to its alignment.
    ///
    /// `None` if the alignment is 0 or if the result is not a `u64`.
    pub const fn padded_size(&self) -> Option<u64> {
        self.size.checked_next_multiple_of(self.alignment)
    }
}
