//! One exact search: depth first over the placements of buffers, in one order of the buffers, for one capacity.
//!
//! A placement in which no buffer can drop is determined by the sequence of its buffers from the lowest offset to the
//! highest (ties go to the order): each lies on the highest end among the buffers before it that are live when it is.
//! The tree thus holds sequences, and each node places one buffer at its *minimal offset*. What cuts the tree down is
//! due to Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (ASPLOS
//! 2023), unless marked with *:
//!
//! - canonical sequences: no buffer follows one of higher offset, or of the same offset and a later place in the order;
//! - dominance: no buffer is placed so high that some other would fit below it, since that one would come first;
//! - *skipped buffers: a buffer which the sequence has passed must yet be lifted by one that is still to come, and
//!   reaches into the bytes the passed one would take. The lowest such end is a bound on its offset;
//! - section bounds: the buffers still to be placed in a section need, taken by minimal offset, that offset or the end
//!   of those before, whichever is higher, plus their size. (*This is the bound of scheduling one machine with release
//!   times, Jackson's rule, with memory in place of time; MiniMalloc takes the lowest minimal offset plus all sizes);
//! - decomposition: where no buffer that is still to be placed lives across two sections, the parts before and after
//!   are independent. If one of them fails, no other placement of the rest helps it, and the search goes straight back
//!   to the node that split it off.

use super::sections::Sections;

/// How a search ended.
pub(super) enum Outcome {
    /// With an offset for every buffer.
    Found(Vec<u64>),
    /// No placement is as low as the capacity, nor lower than this height.
    Refuted(u64),
    /// The nodes ran out.
    Spent,
}

const NONE: usize = usize::MAX;

/// Sections, and the buffers within them that are still to be placed, independent of all others.
#[derive(Clone, Copy)]
struct Component {
    /// The frame whose placement split it off, or `NONE`.
    parent: usize,
    /// Its first section.
    first: usize,
    /// One past its last section.
    last: usize,
    /// Its buffers, by minimal offset: from here in `lists`.
    start: usize,
    /// Up to here.
    end: usize,
    /// The component to search after it, or `NONE`.
    next: usize,
}

/// A node of the current path: a component of which one buffer after another is tried as the next of the sequence.
struct Frame {
    component: Component,
    /// The candidates not tried yet: from here in `candidates`.
    candidate: usize,
    /// Up to here.
    candidates_end: usize,
    /// The buffer placed at the moment, or `NONE`.
    placed: usize,
    /// How long the shared stacks were when the frame was opened.
    trail: usize,
    lists: usize,
    components: usize,
}

/// The state of a search. Buffers are numbered by the order throughout. The vectors are stacks that the frames share,
/// so that a node allocates nothing.
pub(super) struct Tree<'a> {
    order: &'a [usize],
    lower: Vec<usize>,
    upper: Vec<usize>,
    size: Vec<u64>,
    alignment: Vec<u64>,
    capacity: u64,
    /// The lowest height at which a section bound was above the capacity.
    refuted: u64,
    /// The minimal offset of each buffer; once it is placed, its offset.
    offset: Vec<u64>,
    /// For every section, how many buffers still to be placed live in it and in the one before.
    crossing: Vec<u32>,
    frames: Vec<Frame>,
    components: Vec<Component>,
    lists: Vec<usize>,
    candidates: Vec<usize>,
    /// Minimal offsets as they were: (buffer, offset).
    trail: Vec<(usize, u64)>,
    /// The (minimal offset, buffer) of a component, in sequence.
    remaining: Vec<(u64, usize)>,
    /// The same for skipped buffers, with the bound on their offset.
    lifted: Vec<(u64, usize)>,
    /// The bound of every section.
    height: Vec<u64>,
    /// How often the bound of each section was above the capacity.
    pub conflicts: Vec<u64>,
    /// The nodes searched.
    pub nodes: u64,
}

impl<'a> Tree<'a> {
    /// A search with the buffers in some order.
    pub fn new(sections: &Sections, order: &'a [usize], capacity: u64) -> Tree<'a> {
        let count = sections.total.len();
        let mut tree = Tree {
            order,
            lower: order.iter().map(|&buffer| sections.lower[buffer]).collect(),
            upper: order.iter().map(|&buffer| sections.upper[buffer]).collect(),
            size: order.iter().map(|&buffer| sections.size[buffer]).collect(),
            alignment: order.iter().map(|&buffer| sections.alignment[buffer]).collect(),
            capacity,
            refuted: u64::MAX,
            offset: vec![0; order.len()],
            crossing: vec![0; count],
            frames: Vec::new(),
            components: Vec::new(),
            lists: Vec::new(),
            candidates: Vec::new(),
            trail: Vec::new(),
            remaining: (0..order.len()).map(|buffer| (0, buffer)).collect(),
            lifted: Vec::new(),
            height: vec![0; count],
            conflicts: vec![0; count],
            nodes: 0,
        };
        for buffer in 0..order.len() {
            tree.unplace(buffer);
        }
        tree
    }

    /// Searches until a placement is found, all are refuted, or the nodes run out.
    pub fn run(&mut self, nodes: u64) -> Outcome {
        let mut pending = self.split(NONE, 0, self.height.len(), NONE);
        while pending != NONE {
            self.open(pending);
            pending = loop {
                let top = self.frames.len() - 1;
                let frame = &mut self.frames[top];
                if frame.candidate == frame.candidates_end {
                    let parent = frame.component.parent;
                    if parent == NONE {
                        return Outcome::Refuted(self.refuted);
                    }
                    self.back_to(parent);
                    continue;
                }
                if self.nodes == nodes {
                    return Outcome::Spent;
                }
                self.nodes += 1;
                let buffer = self.candidates[frame.candidate];
                frame.candidate += 1;
                self.place(top, buffer);
                if self.within_capacity(top) {
                    let Component { first, last, next, .. } = self.frames[top].component;
                    break self.split(top, first, last, next);
                }
                self.undo(top);
            };
        }
        let mut offsets = vec![0; self.order.len()];
        for (buffer, &original) in self.order.iter().enumerate() {
            offsets[original] = self.offset[buffer];
        }
        Outcome::Found(offsets)
    }

    /// Opens a frame on a component: finds the buffers that may come next.
    fn open(&mut self, component: usize) {
        let component = self.components[component];
        // What came last; nothing may come before it in sequence.
        let last = match component.parent {
            NONE => (0, 0),
            parent => (self.offset[self.frames[parent].placed], self.frames[parent].placed),
        };
        let list = &self.lists[component.start..component.end];
        let mut lowest_end = u64::MAX;
        for &buffer in list {
            lowest_end = lowest_end.min(self.offset[buffer] + self.size[buffer]);
        }
        let candidate = self.candidates.len();
        for &buffer in list {
            if self.offset[buffer] >= lowest_end {
                break;
            }
            if (self.offset[buffer], buffer) >= last {
                self.candidates.push(buffer);
            }
        }
        self.frames.push(Frame {
            component,
            candidate,
            candidates_end: self.candidates.len(),
            placed: NONE,
            trail: self.trail.len(),
            lists: self.lists.len(),
            components: self.components.len(),
        });
    }

    /// Places a buffer at its minimal offset, which lifts those it meets. Lists in `remaining` what is left.
    fn place(&mut self, frame: usize, buffer: usize) {
        self.frames[frame].placed = buffer;
        let Component { start, end, .. } = self.frames[frame].component;
        let (lower, upper) = (self.lower[buffer], self.upper[buffer]);
        let top = self.offset[buffer] + self.size[buffer];
        for count in &mut self.crossing[lower + 1..upper] {
            *count -= 1;
        }
        self.remaining.clear();
        for &other in &self.lists[start..end] {
            if other == buffer {
                continue;
            }
            let offset = self.offset[other];
            if offset < top && self.lower[other] < upper && lower < self.upper[other] {
                self.trail.push((other, offset));
                self.offset[other] = top.next_multiple_of(self.alignment[other]);
            }
            self.remaining.push((self.offset[other], other));
        }
        self.remaining.sort_unstable();
    }

    /// Whether the bounds leave it possible that what is left of a frame's component is placed within the capacity.
    fn within_capacity(&mut self, frame: usize) -> bool {
        let placed = self.frames[frame].placed;
        let last = (self.offset[placed], placed);
        let skipped = self.remaining.partition_point(|&buffer| buffer < last);
        self.lifted.clear();
        for index in 0..skipped {
            let (offset, buffer) = self.remaining[index];
            match self.lift(offset, buffer, last.0) {
                Some(lifted) => self.lifted.push((lifted, buffer)),
                None => return false,
            }
        }
        self.lifted.sort_unstable();

        // By minimal offset: the skipped buffers and the others merged.
        let Component { first, last, .. } = self.frames[frame].component;
        self.height[first..last].fill(0);
        let (mut lifted, mut other) = (0, skipped);
        loop {
            let (offset, buffer) = match (self.lifted.get(lifted), self.remaining.get(other)) {
                (None, None) => return true,
                (Some(&next), None) => next,
                (None, Some(&next)) => next,
                (Some(&skipped), Some(&next)) => skipped.min(next),
            };
            if self.lifted.get(lifted) == Some(&(offset, buffer)) {
                lifted += 1;
            } else {
                other += 1;
            }
            let size = self.size[buffer];
            for section in self.lower[buffer]..self.upper[buffer] {
                let height = self.height[section].max(offset) + size;
                self.height[section] = height;
                if height > self.capacity {
                    self.conflicts[section] += 1;
                    self.refuted = self.refuted.min(height);
                    return false;
                }
            }
        }
    }

    /// A bound on the offset of a buffer that the sequence, now at the offset `floor`, has passed: the lowest end of
    /// a buffer that may still lift it. `None` if there is none.
    fn lift(&self, offset: u64, buffer: usize, floor: u64) -> Option<u64> {
        let end = offset + self.size[buffer];
        let mut lowest = None;
        for &(other_offset, other) in &self.remaining {
            if other_offset.max(floor) >= end {
                break;
            }
            if other != buffer && self.lower[buffer] < self.upper[other] && self.lower[other] < self.upper[buffer] {
                let other_end = other_offset.max(floor) + self.size[other];
                lowest = Some(lowest.unwrap_or(u64::MAX).min(other_end));
            }
        }
        lowest
    }

    /// Splits what is left of a component into its independent parts, in front of the component `next`. Returns the
    /// first of them: the one of fewest buffers, which is the cheapest to refute.
    fn split(&mut self, parent: usize, first: usize, last: usize, next: usize) -> usize {
        let from = self.components.len();
        let mut begin = first;
        for section in first + 1..=last {
            if section < last && self.crossing[section] > 0 {
                continue;
            }
            let start = self.lists.len();
            for &(_, buffer) in &self.remaining {
                if self.lower[buffer] >= begin && self.upper[buffer] <= section {
                    self.lists.push(buffer);
                }
            }
            let end = self.lists.len();
            if end > start {
                self.components.push(Component { parent, first: begin, last: section, start, end, next });
            }
            begin = section;
        }
        self.components[from..].sort_by_key(|part| std::cmp::Reverse(part.end - part.start));
        let mut head = next;
        for part in from..self.components.len() {
            self.components[part].next = head;
            head = part;
        }
        head
    }

    /// Takes back the placement of a frame.
    fn undo(&mut self, frame: usize) {
        let Frame { placed, trail, lists, components, .. } = self.frames[frame];
        self.frames[frame].placed = NONE;
        self.unplace(placed);
        for (buffer, offset) in self.trail.drain(trail..).rev() {
            self.offset[buffer] = offset;
        }
        self.lists.truncate(lists);
        self.components.truncate(components);
    }

    /// Goes back to a frame and takes back its placement and all that followed.
    fn back_to(&mut self, frame: usize) {
        while self.frames.len() > frame + 1 {
            if let Some(Frame { placed, .. }) = self.frames.pop()
                && placed != NONE
            {
                self.unplace(placed);
            }
        }
        self.candidates.truncate(self.frames[frame].candidates_end);
        self.undo(frame);
    }

    fn unplace(&mut self, buffer: usize) {
        for count in &mut self.crossing[self.lower[buffer] + 1..self.upper[buffer]] {
            *count += 1;
        }
    }
}
