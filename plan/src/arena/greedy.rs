//! Placement in one pass: the buffers in some order, each at the lowest gap that holds it.

use super::sections::Sections;
use std::cmp::Ordering;

/// An order in which to place the buffers.
pub(super) struct Order {
    /// Its name, for reports.
    pub name: &'static str,
    /// Which of two buffers comes first.
    compare: fn(&Sections, usize, usize) -> Ordering,
}

/// The orders that are tried, those first which are most often perfect on training.
pub(super) const ORDERS: [Order; 4] = [
    // Exact if any two lifespans are nested or apart: each buffer then lies on others that outlive it on both sides.
    Order { name: "longest first", compare: |s, a, b| s.length(b).cmp(&s.length(a)).then(s.size[b].cmp(&s.size[a])) },
    // Packs the time of the peak without gaps before anything can get in the way there.
    Order { name: "tightest first", compare: |s, a, b| s.peak(b).cmp(&s.peak(a)).then(s.length(b).cmp(&s.length(a))) },
    Order { name: "largest first", compare: |s, a, b| s.size[b].cmp(&s.size[a]).then(s.length(b).cmp(&s.length(a))) },
    Order { name: "largest area first", compare: |s, a, b| s.area(b).cmp(&s.area(a)) },
];

/// Places all buffers in an order. Returns their offsets and the height.
pub(super) fn greedy(sections: &Sections, order: &Order) -> (Vec<u64>, u64) {
    let count = sections.len();
    let mut sequence: Vec<usize> = (0..count).collect();
    sequence.sort_unstable_by(|&a, &b| (order.compare)(sections, a, b).then(a.cmp(&b)));
    let mut offsets = vec![0; count];
    let mut height = 0;
    let mut placed = Placed::default();
    for &buffer in &sequence {
        let offset = placed.lowest_gap(sections, buffer);
        placed.insert(sections, buffer, offset);
        offsets[buffer] = offset;
        height = height.max(offset + sections.size[buffer]);
    }
    (offsets, height)
}

/// The buffers placed so far, by offset.
#[derive(Default)]
struct Placed {
    lower: Vec<usize>,
    upper: Vec<usize>,
    offset: Vec<u64>,
    end: Vec<u64>,
}

impl Placed {
    /// The lowest offset at which the buffer overlaps none of those placed.
    fn lowest_gap(&self, sections: &Sections, buffer: usize) -> u64 {
        let (lower, upper) = (sections.lower[buffer], sections.upper[buffer]);
        let (size, alignment) = (sections.size[buffer], sections.alignment[buffer]);
        let (lowers, uppers) = (&self.lower[..], &self.upper[..]);
        let (offsets, ends) = (&self.offset[..], &self.end[..]);
        let mut free = 0;
        let mut other = 0;
        while other < lowers.len() {
            if lowers[other] < upper && lower < uppers[other] {
                if offsets[other] >= free + size {
                    return free;
                }
                if ends[other] > free {
                    free = ends[other].next_multiple_of(alignment);
                }
            }
            other += 1;
        }
        free
    }

    fn insert(&mut self, sections: &Sections, buffer: usize, offset: u64) {
        let at = self.offset.partition_point(|&other| other < offset);
        self.lower.insert(at, sections.lower[buffer]);
        self.upper.insert(at, sections.upper[buffer]);
        self.offset.insert(at, offset);
        self.end.insert(at, offset + sections.size[buffer]);
    }
}
