//! The way in: greedy orders first, then the search.

use super::greedy::{ORDERS, greedy};
use super::search::search;
use super::sections::Sections;
use super::skyline::skyline;
use super::{Effort, Method, PlaceError, Problem, Solution};

/// Places all buffers of a problem, as low as the effort allows.
///
/// With a [capacity](Problem::capacity), the first placement within it is returned. The same problem and effort always
/// have the same result.
///
/// # Errors
///
/// If a buffer is never live, has alignment 0, or is too large; and if no placement within the capacity is found.
pub fn place(problem: &Problem, effort: &Effort) -> Result<Solution, PlaceError> {
    let sections = Sections::new(problem)?;
    let lower_bound = sections.lower_bound();
    let goal = problem.capacity.unwrap_or(0).max(effort.enough).max(lower_bound);

    let (mut placed, mut height) = greedy(&sections, &ORDERS[0].sequence(&sections));
    let mut method = Method::Greedy(ORDERS[0].name);
    for order in &ORDERS[1..] {
        if height <= goal {
            break;
        }
        let (offsets, reached) = greedy(&sections, &order.sequence(&sections));
        if reached < height {
            (placed, height, method) = (offsets, reached, Method::Greedy(order.name));
        }
    }
    // Each order once before any is repaired.
    for rounds in [Some(0), Some(effort.rounds).filter(|rounds| *rounds > 0)].into_iter().flatten() {
        for order in &ORDERS {
            if height <= goal {
                break;
            }
            let (offsets, reached) = skyline(&sections, order.sequence(&sections), goal, rounds);
            if reached < height {
                (placed, height, method) = (offsets, reached, Method::Skyline(order.name));
            }
        }
    }

    let mut nodes = 0;
    let mut proven = lower_bound;
    let possible = problem.capacity.is_none_or(|capacity| lower_bound <= capacity);
    if height > goal && possible && sections.len() <= effort.buffers {
        let found = search(&sections, lower_bound, goal, height, effort.nodes);
        (nodes, proven) = (found.nodes, found.lower_bound);
        if let Some(offsets) = found.offsets {
            (placed, height, method) = (offsets, found.height, Method::Search);
        }
    }

    if let Some(capacity) = problem.capacity
        && height > capacity
    {
        return Err(PlaceError::OverCapacity { capacity, lower_bound, height, proven: proven > capacity });
    }
    // Buffers of no bytes stay at 0.
    let mut offsets = vec![0; problem.buffers.len()];
    for (buffer, &id) in sections.id.iter().enumerate() {
        offsets[id] = placed[buffer];
    }
    Ok(Solution { offsets, height, lower_bound, optimal: height == proven, nodes, method })
}
