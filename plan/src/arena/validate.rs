//! A check of a placement that trusts nobody: it shares no code with the planner.

use super::{Problem, Solution};
use std::collections::BTreeMap;
use std::fmt;

/// What is wrong with a placement. Buffers are named by their index in the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The placement has not one offset for every buffer.
    Count {
        /// The buffers of the problem.
        buffers: usize,
        /// The offsets of the placement.
        offsets: usize,
    },
    /// A buffer's offset is not a multiple of its alignment.
    Misaligned {
        /// The buffer.
        buffer: usize,
        /// Its offset.
        offset: u64,
        /// Its alignment.
        alignment: u64,
    },
    /// A buffer ends above the height of the placement.
    AboveHeight {
        /// The buffer.
        buffer: usize,
        /// Its offset.
        offset: u64,
        /// Its size.
        size: u64,
        /// The height.
        height: u64,
    },
    /// The height is above the capacity of the problem.
    OverCapacity {
        /// The height.
        height: u64,
        /// The capacity.
        capacity: u64,
    },
    /// Two buffers share bytes at a time at which both are live.
    Overlap {
        /// The buffer of lower index.
        first: usize,
        /// The other.
        second: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Count { buffers, offsets } => {
                write!(f, "{offsets} offsets for {buffers} buffers")
            }
            Fault::Misaligned { buffer, offset, alignment } => {
                write!(f, "buffer {buffer} lies at {offset}, which is not a multiple of {alignment}")
            }
            Fault::AboveHeight { buffer, offset, size, height } => {
                write!(f, "buffer {buffer} lies at {offset} and takes {size} bytes, more than the height {height}")
            }
            Fault::OverCapacity { height, capacity } => {
                write!(f, "the height {height} is above the capacity {capacity}")
            }
            Fault::Overlap { first, second } => {
                write!(f, "buffers {first} and {second} share bytes while both are live")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// Checks that no two buffers live at the same time overlap, and that all are aligned and within the height, which is
/// within the capacity. Takes O(n log n) time: a sweep over births and deaths with the set of live byte ranges.
pub fn validate(problem: &Problem, solution: &Solution) -> Result<(), Fault> {
    let (buffers, offsets) = (&problem.buffers, &solution.offsets);
    if buffers.len() != offsets.len() {
        return Err(Fault::Count { buffers: buffers.len(), offsets: offsets.len() });
    }
    if let Some(capacity) = problem.capacity
        && solution.height > capacity
    {
        return Err(Fault::OverCapacity { height: solution.height, capacity });
    }
    // (step, is a birth, buffer): at one step deaths sort before births.
    let mut events = Vec::new();
    for (index, buffer) in buffers.iter().enumerate() {
        let offset = offsets[index];
        if offset.checked_rem(buffer.alignment) != Some(0) {
            return Err(Fault::Misaligned { buffer: index, offset, alignment: buffer.alignment });
        }
        if offset.checked_add(buffer.size).is_none_or(|end| end > solution.height) {
            return Err(Fault::AboveHeight { buffer: index, offset, size: buffer.size, height: solution.height });
        }
        if buffer.size > 0 && buffer.lifespan.lower < buffer.lifespan.upper {
            events.push((buffer.lifespan.lower, true, index));
            events.push((buffer.lifespan.upper, false, index));
        }
    }
    events.sort_unstable();
    // The live buffers by offset: as long as no two overlap, offsets differ and a newcomer can only hit its neighbours.
    let mut live = BTreeMap::new();
    for (_, born, index) in events {
        let offset = offsets[index];
        if !born {
            live.remove(&offset);
            continue;
        }
        let end = offset + buffers[index].size;
        if let Some((_, &other)) = live.range(..end).next_back() {
            let other: usize = other;
            if offsets[other] + buffers[other].size > offset {
                return Err(Fault::Overlap { first: index.min(other), second: index.max(other) });
            }
        }
        live.insert(offset, index);
    }
    Ok(())
}
