//! The lowest height of tiny problems, by trying all sequences in which buffers can be placed at the lowest gap.

use plimsoll_plan::arena::Problem;

/// The lowest height. Some sequence finds it: that of a lowest placement's buffers by offset.
pub fn lowest_height(problem: &Problem) -> u64 {
    let mut best = u64::MAX;
    extend(problem, &mut Vec::new(), &mut best);
    best
}

fn extend(problem: &Problem, placed: &mut Vec<(usize, u64)>, best: &mut u64) {
    let buffers = &problem.buffers;
    if placed.len() == buffers.len() {
        let height = placed.iter().map(|&(index, offset)| offset + buffers[index].padded_size().unwrap()).max();
        *best = (*best).min(height.unwrap_or(0));
        return;
    }
    for index in 0..buffers.len() {
        if placed.iter().any(|&(other, _)| other == index) {
            continue;
        }
        // The highest end below it: all that come before it in the sequence lie below.
        let offset = placed
            .iter()
            .filter(|&&(other, _)| buffers[other].lifespan.overlaps(buffers[index].lifespan))
            .map(|&(other, offset)| offset + buffers[other].padded_size().unwrap())
            .max()
            .unwrap_or(0)
            .next_multiple_of(buffers[index].alignment);
        placed.push((index, offset));
        extend(problem, placed, best);
        placed.pop();
    }
}
