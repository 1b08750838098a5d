//! Placement from the bottom up: at the lowest and leftmost stretch of the skyline, the first buffer in some order that fits
//! between its neighbours (Sekiyama et al. 2018, "Profile-guided memory optimization for deep neural networks").
//!
//! It sees what no buffer-by-buffer order does: which place is the next to be filled. Where short-lived buffers must stand
//! side by side on long-lived ones, as where much is computed again, it is often exact and the greedy orders are not.

use super::sections::Sections;

/// Places all buffers; of those that fit a place, the first in `sequence`. Returns their offsets and the height.
///
/// Then over and over, at most `rounds` times more: what ends above the goal comes earlier in the sequence the next time, so
/// that it is placed before what was in its way (Joslin & Clements 1999, "Squeaky wheel optimization").
pub(super) fn skyline(sections: &Sections, mut sequence: Vec<usize>, goal: u64, rounds: u32) -> (Vec<u64>, u64) {
    let mut best = fill(sections, &sequence);
    let mut offsets = best.0.clone();
    for _ in 0..rounds {
        if best.1 <= goal {
            break;
        }
        let rank = |(at, &buffer): (usize, &usize)| {
            let is_above = offsets[buffer] + sections.size[buffer] > goal;
            (if is_above { at } else { 2 * at + 1 }, buffer)
        };
        let mut ranked: Vec<(usize, usize)> = sequence.iter().enumerate().map(rank).collect();
        ranked.sort_unstable();
        sequence = ranked.into_iter().map(|(_, buffer)| buffer).collect();
        let placed = fill(sections, &sequence);
        offsets.clone_from(&placed.0);
        if placed.1 < best.1 {
            best = placed;
        }
    }
    best
}

/// Fills the arena once. Loops run over indices of slices, which are quick without optimization.
fn fill(sections: &Sections, sequence: &[usize]) -> (Vec<u64>, u64) {
    let times = sections.total.len();
    let mut sky = Sky { height: vec![0; times], next: (1..=times).collect() };
    let mut offsets = vec![0; sections.len()];
    let mut highest = 0;
    // The buffers that are left, each by its place in the sequence, under their first section.
    let mut left: Vec<Vec<usize>> = vec![Vec::new(); times];
    // How many buffers that are left live in each section; where there are none, the skyline is of no interest.
    let mut waiting = vec![0u32; times];
    for (place, &buffer) in sequence.iter().enumerate() {
        left[sections.lower[buffer]].push(place);
        waiting[sections.lower[buffer]..sections.upper[buffer]].iter_mut().for_each(|count| *count += 1);
    }
    let (uppers, waiting) = (&sections.upper[..], &mut waiting[..]);
    let mut placed = 0;
    while placed < sequence.len() {
        let Stretch { begin, end, before } = sky.lowest();
        let mut first = usize::MAX;
        for places in &left[begin..end] {
            let mut index = 0;
            while index < places.len() && places[index] < first {
                if uppers[sequence[places[index]]] <= end {
                    first = places[index];
                }
                index += 1;
            }
        }
        let height = sky.height[begin];
        if first == usize::MAX {
            // Nothing fits between the neighbours: up to the lower one of them.
            let after = if end < times { sky.height[end] } else { u64::MAX };
            sky.height[begin] = before.min(after);
            continue;
        }
        let buffer = sequence[first];
        let (lower, upper) = (sections.lower[buffer], sections.upper[buffer]);
        left[lower].retain(|place| *place != first);
        placed += 1;
        let offset = height.next_multiple_of(sections.alignment[buffer]);
        offsets[buffer] = offset;
        let top = offset + sections.size[buffer];
        highest = highest.max(top);
        if lower > begin {
            sky.next[begin] = lower;
        }
        let mut section = lower;
        while section < upper {
            waiting[section] -= 1;
            sky.height[section] = if waiting[section] == 0 { u64::MAX } else { top };
            sky.next[section] = section + 1;
            section += 1;
        }
        if upper < end {
            (sky.height[upper], sky.next[upper]) = (height, end);
        }
    }
    (offsets, highest)
}

/// The skyline: stretches of sections at one height.
struct Sky {
    /// The height of the stretch that begins at a section; of no meaning elsewhere.
    height: Vec<u64>,
    /// Where the stretch that begins at a section ends, and the next one begins.
    next: Vec<usize>,
}

/// Sections at the lowest height.
struct Stretch {
    begin: usize,
    end: usize,
    /// The height before them.
    before: u64,
}

impl Sky {
    /// The first longest stretch at the lowest height. Neighbours of equal height become one on the way.
    fn lowest(&mut self) -> Stretch {
        let (height, next) = (&self.height[..], &mut self.next[..]);
        let mut lowest = Stretch { begin: 0, end: 0, before: u64::MAX };
        let (mut least, mut before, mut begin) = (u64::MAX, u64::MAX, 0);
        while begin < height.len() {
            let here = height[begin];
            let mut end = next[begin];
            while end < height.len() && height[end] == here {
                end = next[end];
            }
            next[begin] = end;
            if here < least {
                least = here;
                lowest = Stretch { begin, end, before };
            }
            (before, begin) = (here, end);
        }
        lowest
    }
}
