//! The way in: greedy orders first, then the search.

use super::greedy::{ORDERS, greedy};
use super::sections::Sections;
use super::{Effort, Method, PlaceError, Problem, Solution};

/// Places all buffers of a problem, as low as the effort allows.
///
/// With a [capacity](Problem::capacity), the first placement within it is returned. The same problem and effort always
/// have the same result.
pub fn place(problem: &Problem, effort: &Effort) -> Result<Solution, PlaceError> {
    let _ = effort;
    let sections = Sections::new(problem)?;
    let lower_bound = sections.lower_bound();
    let goal = problem.capacity.unwrap_or(0).max(lower_bound);

    let mut best = (Vec::new(), u64::MAX, Method::Greedy(ORDERS[0].name));
    for order in &ORDERS {
        let (offsets, height) = greedy(&sections, order);
        if height < best.1 {
            best = (offsets, height, Method::Greedy(order.name));
        }
        if height <= goal {
            break;
        }
    }
    let (placed, height, method) = best;
    if let Some(capacity) = problem.capacity
        && height > capacity
    {
        return Err(PlaceError::OverCapacity { capacity, lower_bound, height, proven: lower_bound > capacity });
    }
    // Buffers of no bytes stay at 0.
    let mut offsets = vec![0; problem.buffers.len()];
    for (buffer, &id) in sections.id.iter().enumerate() {
        offsets[id] = placed[buffer];
    }
    Ok(Solution { offsets, height, lower_bound, optimal: height == lower_bound, nodes: 0, method })
}
