//! Placement in one pass: the buffers in some order, each at the lowest gap that holds it.

use super::sections::Sections;
use std::cmp::Reverse;

/// An order in which to place the buffers.
pub(super) struct Order {
    /// Its name, for reports.
    pub name: &'static str,
    /// The buffers with the largest key come first; of equals, the first in the problem.
    key: fn(&Sections, usize) -> u128,
}

/// The orders that are tried, those first which are most often perfect on training.
pub(super) const ORDERS: [Order; 5] = [
    // Exact if any two lifespans are nested or apart: each buffer then lies on others that outlive it on both sides.
    Order { name: "longest first", key: |s, b| pair(s.length(b) as u64, s.size[b]) },
    // What lies below outlives what lies on it, so that no gap opens between: where values and their gradients die together, one
    // pair after the other, as in a block of DenseNet.
    Order { name: "last to die first", key: |s, b| pair(s.upper[b] as u64, s.length(b) as u64) },
    // Packs the time of the peak without gaps before anything can get in the way there.
    Order { name: "tightest first", key: |s, b| pair(s.peak(b), s.length(b) as u64) },
    Order { name: "largest first", key: |s, b| pair(s.size[b], s.length(b) as u64) },
    Order { name: "largest area first", key: |s, b| s.area(b) },
];

/// Two keys as one, the first of which counts more.
fn pair(first: u64, second: u64) -> u128 {
    u128::from(first) << 64 | u128::from(second)
}

impl Order {
    /// The buffers in this order.
    pub fn sequence(&self, sections: &Sections) -> Vec<usize> {
        let keys: Vec<u128> = (0..sections.len()).map(|buffer| (self.key)(sections, buffer)).collect();
        let keys = &keys[..];
        let mut sequence: Vec<usize> = (0..sections.len()).collect();
        sequence.sort_by_key(|&buffer| Reverse(keys[buffer]));
        sequence
    }
}

/// Places all buffers in a sequence. Returns their offsets and the height.
pub(super) fn greedy(sections: &Sections, sequence: &[usize]) -> (Vec<u64>, u64) {
    let count = sections.len();
    let mut offsets = vec![0; count];
    let mut height = 0;
    let mut taken = Taken {
        floor: vec![0; sections.total.len()],
        loose: Vec::new(),
        of_section: vec![Vec::new(); sections.total.len()],
        room: 16 * sections.total.len(),
        met: Vec::new(),
    };
    for &buffer in sequence {
        let offset = taken.lowest_gap(sections, buffer);
        taken.insert(sections, buffer, offset);
        offsets[buffer] = offset;
        height = height.max(offset + sections.size[buffer]);
    }
    (offsets, height)
}

/// What is taken so far. Buffers that pile up without a gap below them, as most do in training, are remembered by the
/// floor alone. Loops run over indices of slices, which are quick without optimization.
struct Taken {
    /// For every section, an offset below which every byte is taken.
    floor: Vec<u64>,
    /// The buffers that are not below the floor, by offset.
    loose: Vec<Placed>,
    /// The same for every section, in any order; no longer kept up once there is no room.
    of_section: Vec<Vec<Placed>>,
    /// How many more entries `of_section` may take: where many long-lived buffers are loose, it does not pay.
    room: usize,
    /// Scratch space: what the buffer to be placed may meet, by offset.
    met: Vec<Placed>,
}

#[derive(Clone, Copy)]
struct Placed {
    offset: u64,
    end: u64,
    lower: usize,
    upper: usize,
    /// Among the loose: the highest end of this one and of those before it.
    reach: u64,
}

impl Taken {
    /// The lowest offset at which the buffer overlaps none of those placed.
    fn lowest_gap(&mut self, sections: &Sections, buffer: usize) -> u64 {
        let (lower, upper) = (sections.lower[buffer], sections.upper[buffer]);
        let (size, alignment) = (sections.size[buffer], sections.alignment[buffer]);
        let mut free = sections.highest(buffer, &self.floor).next_multiple_of(alignment);

        // A buffer of few sections meets few others: it is quicker to gather and sort these than to pass by all.
        let below = self.loose.partition_point(|other| other.reach <= free);
        let mut others = &self.loose[below..];
        let of_section = &self.of_section[lower..upper];
        let (mut section, mut count) = (0, 0);
        while self.room > 0 && section < of_section.len() {
            count += of_section[section].len();
            section += 1;
        }
        if self.room > 0 && count * 16 < others.len() {
            self.met.clear();
            section = 0;
            while section < of_section.len() {
                let others = &of_section[section][..];
                let mut index = 0;
                while index < others.len() {
                    if others[index].end > free {
                        self.met.push(others[index]);
                    }
                    index += 1;
                }
                section += 1;
            }
            self.met.sort_unstable_by_key(|other| other.offset);
            others = &self.met;
        }

        let mut index = 0;
        while index < others.len() {
            let other = &others[index];
            if other.lower < upper && lower < other.upper && free < other.end {
                if free + size <= other.offset {
                    return free;
                }
                free = other.end.next_multiple_of(alignment);
            }
            index += 1;
        }
        free
    }

    fn insert(&mut self, sections: &Sections, buffer: usize, offset: u64) {
        let (lower, upper) = (sections.lower[buffer], sections.upper[buffer]);
        let end = offset + sections.size[buffer];
        let placed = Placed { offset, end, lower, upper, reach: end };
        let floors = &mut self.floor[lower..upper];
        let of_section = &mut self.of_section[lower..upper];
        let mut gapless = true;
        let mut index = 0;
        while index < floors.len() {
            if floors[index] == offset {
                floors[index] = placed.end;
            } else {
                gapless = false;
                if self.room > 0 {
                    of_section[index].push(placed);
                    self.room -= 1;
                }
            }
            index += 1;
        }
        if !gapless {
            let at = self.loose.partition_point(|other| other.offset < offset);
            let before = if at > 0 { self.loose[at - 1].reach } else { 0 };
            self.loose.insert(at, Placed { reach: end.max(before), ..placed });
            for other in self.loose[at + 1..].iter_mut().take_while(|other| other.reach < end) {
                other.reach = end;
            }
        }
    }
}
