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

/// Fills the arena once.
fn fill(sections: &Sections, sequence: &[usize]) -> (Vec<u64>, u64) {
    let times = sections.total.len();
    let mut sky = vec![0u64; times];
    let mut offsets = vec![0; sections.len()];
    let mut highest = 0;
    let mut left = sequence.to_vec();
    // How many buffers that are left live in each section; where there are none, the skyline is of no interest.
    let mut waiting = vec![0u32; times];
    for &buffer in sequence {
        waiting[sections.lower[buffer]..sections.upper[buffer]].iter_mut().for_each(|count| *count += 1);
    }
    // Loops run over indices of slices, which are quick without optimization.
    let (lowers, uppers) = (&sections.lower[..], &sections.upper[..]);
    while !left.is_empty() {
        let (begin, end) = lowest_stretch(&sky, &waiting);
        let (mut at, candidates) = (0, &left[..]);
        while at < candidates.len() && (lowers[candidates[at]] < begin || uppers[candidates[at]] > end) {
            at += 1;
        }
        if at == candidates.len() {
            // Nothing fits between the neighbours: up to the lower one of them.
            let before = if begin > 0 { sky[begin - 1] } else { u64::MAX };
            let after = if end < times { sky[end] } else { u64::MAX };
            sky[begin..end].fill(before.min(after));
            continue;
        }
        let buffer = left.remove(at);
        let (lower, upper) = (sections.lower[buffer], sections.upper[buffer]);
        let offset = sky[lower].next_multiple_of(sections.alignment[buffer]);
        offsets[buffer] = offset;
        let top = offset + sections.size[buffer];
        highest = highest.max(top);
        let mut section = lower;
        while section < upper {
            sky[section] = top;
            waiting[section] -= 1;
            if waiting[section] == 0 {
                sky[section] = u64::MAX;
            }
            section += 1;
        }
    }
    (offsets, highest)
}

/// The first longest run of sections at the lowest height.
fn lowest_stretch(sky: &[u64], waiting: &[u32]) -> (usize, usize) {
    let (mut begin, mut lowest, mut section) = (0, u64::MAX, 0);
    while section < sky.len() {
        if sky[section] < lowest && waiting[section] > 0 {
            (begin, lowest) = (section, sky[section]);
        }
        section += 1;
    }
    let mut end = begin;
    while end < sky.len() && sky[end] == lowest {
        end += 1;
    }
    (begin, end)
}
