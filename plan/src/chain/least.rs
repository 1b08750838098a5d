//! The least memory in which a chain can be reversed, to the byte.

use super::Operation;
use super::operation::{Choice, unfold};
use super::ranges::Ranges;

/// The operations whose peak is the least, whatever they cost; among equal peaks, those that cost the least more in
/// each range. This is the recurrence of the [table](super::table) with the memory as its value:
///
/// ```text
/// M(s, t) = min of  max( keep_peak(s, t), kept(s) + M(s+1, t) )
///                   max( advance_peak(s, k, t), output(k-1) + M(k, t), M(s, k-1) )  for k = s+1..=t
/// ```
pub(super) fn least_memory(ranges: &Ranges) -> Vec<Operation> {
    /// The bytes of a range, what recomputation adds to its cost, and where it is split: at its first stage if not.
    #[derive(Clone, Copy)]
    struct Least {
        bytes: u64,
        excess: u64,
        middle: usize,
    }
    let count = ranges.stages.len();
    let mut least = vec![Least { bytes: 0, excess: 0, middle: 0 }; count * count];
    for first in (0..count).rev() {
        for last in first..count {
            let mut best = Least { bytes: ranges.keep_peak(first, last), excess: 0, middle: first };
            if first < last {
                let rest = least[(first + 1) * count + last];
                best.bytes = best.bytes.max(ranges.kept(first) + rest.bytes);
                best.excess = rest.excess;
            }
            for middle in first + 1..=last {
                let later = least[middle * count + last];
                let earlier = least[first * count + middle - 1];
                let bytes = ranges
                    .advance_peak(first, middle, last)
                    .max(ranges.stages[middle - 1].output + later.bytes)
                    .max(earlier.bytes);
                let excess = ranges.advance_cost(first, middle) + later.excess + earlier.excess;
                if (bytes, excess) < (best.bytes, best.excess) {
                    best = Least { bytes, excess, middle };
                }
            }
            least[first * count + last] = best;
        }
    }
    unfold(count, (), |first, last, ()| match least[first * count + last].middle {
        middle if middle == first => Choice::Keep { rest: () },
        middle => Choice::Split { middle, later: () },
    })
}
