//! Why a problem has no placement.

use super::Lifespan;
use std::fmt;

/// Why [`place`](super::place) gives no placement. Buffers are named by their index in the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// A buffer is never live.
    EmptyLifespan {
        /// The buffer.
        buffer: usize,
        /// Its lifespan, whose upper end is not above its lower end.
        lifespan: Lifespan,
    },
    /// A buffer's alignment is 0.
    ZeroAlignment {
        /// The buffer.
        buffer: usize,
    },
    /// The sizes, rounded up to the alignments, add up to more than a `u64` holds.
    TooLarge {
        /// The buffer at which the sum leaves a `u64`.
        buffer: usize,
        /// Its size.
        size: u64,
        /// Its alignment.
        alignment: u64,
    },
    /// No placement within the capacity was found.
    OverCapacity {
        /// The bytes there are.
        capacity: u64,
        /// The most bytes live at any one time.
        lower_bound: u64,
        /// The height of the lowest placement that was found.
        height: u64,
        /// Whether it is proven that no placement fits. If not, more effort may find one.
        proven: bool,
    },
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::EmptyLifespan { buffer, lifespan } => {
                write!(
                    f,
                    "buffer {buffer} is never live: its lifespan is {lifespan}, and its end must be above its start"
                )
            }
            PlaceError::ZeroAlignment { buffer } => {
                write!(f, "buffer {buffer} has alignment 0: use 1 for a buffer that may lie anywhere")
            }
            PlaceError::TooLarge { buffer, size, alignment } => write!(
                f,
                "buffer {buffer} is too large: with its {size} bytes, aligned to {alignment}, the sizes add up to more than 2^64 - 1"
            ),
            PlaceError::OverCapacity { capacity, lower_bound, height, proven } => {
                if lower_bound > capacity {
                    write!(f, "{lower_bound} bytes are live at one time, and the capacity is {capacity} bytes")
                } else if *proven {
                    write!(
                        f,
                        "no placement fits a capacity of {capacity} bytes; the lowest that was found takes {height} bytes"
                    )
                } else {
                    write!(
                        f,
                        "no placement was found that fits a capacity of {capacity} bytes; the lowest takes {height} bytes, \
                         and more effort may find a lower one (the most bytes live at one time are {lower_bound})"
                    )
                }
            }
        }
    }
}

impl std::error::Error for PlaceError {}
