//! Random problems.

use crate::brute_force::lowest_height;
use plimsoll_plan::arena::{Buffer, Effort, Fault, Lifespan, Problem, Solution, lower_bound, place, validate};
use proptest::prelude::*;

fn buffers(count: usize, steps: u32, size: u64, alignments: &'static [u64]) -> impl Strategy<Value = Problem> {
    let buffer = (0..steps, 1..=steps, 0..=size, prop::sample::select(alignments)).prop_map(
        |(lower, length, size, alignment)| Buffer { lifespan: Lifespan::new(lower, lower + length), size, alignment },
    );
    prop::collection::vec(buffer, 0..=count).prop_map(|buffers| Problem { buffers, capacity: None })
}

/// What `validate` promises, pair by pair.
fn plainly_valid(problem: &Problem, solution: &Solution) -> bool {
    let end = |index: usize| solution.offsets[index] + problem.buffers[index].size;
    (0..problem.buffers.len()).all(|a| {
        let buffer = &problem.buffers[a];
        let apart = |b: usize| {
            !buffer.lifespan.overlaps(problem.buffers[b].lifespan)
                || buffer.size == 0
                || problem.buffers[b].size == 0
                || end(a) <= solution.offsets[b]
                || end(b) <= solution.offsets[a]
        };
        solution.offsets[a].is_multiple_of(buffer.alignment) && end(a) <= solution.height && (0..a).all(apart)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn placements_are_valid_and_repeatable(problem in buffers(40, 20, 5000, &[256])) {
        let effort = Effort { rounds: 4, nodes: 2000, buffers: 100, ..Effort::GREEDY };
        let solution = place(&problem, &effort).unwrap();
        prop_assert_eq!(validate(&problem, &solution), Ok(()));
        prop_assert!(plainly_valid(&problem, &solution));
        prop_assert_eq!(Ok(solution.lower_bound), lower_bound(&problem));
        prop_assert!(solution.height >= solution.lower_bound);
        prop_assert_eq!(place(&problem, &effort).unwrap(), solution);
    }

    #[test]
    fn alignments_may_differ(problem in buffers(20, 10, 50, &[1, 2, 8, 12])) {
        let solution = place(&problem, &Effort { rounds: 4, nodes: 2000, buffers: 100, ..Effort::GREEDY }).unwrap();
        prop_assert_eq!(validate(&problem, &solution), Ok(()));
        prop_assert!(plainly_valid(&problem, &solution));
    }

    #[test]
    fn tiny_problems_are_placed_as_low_as_can_be(problem in buffers(7, 6, 6, &[1])) {
        let solution = place(&problem, &Effort::THOROUGH).unwrap();
        prop_assert_eq!(solution.height, lowest_height(&problem));
        prop_assert!(solution.optimal);
    }

    #[test]
    fn tiny_problems_of_differing_alignment_as_well(problem in buffers(6, 5, 9, &[1, 2, 3, 4])) {
        let solution = place(&problem, &Effort::THOROUGH).unwrap();
        prop_assert_eq!(solution.height, lowest_height(&problem));
        prop_assert!(solution.optimal);
    }

    #[test]
    fn a_capacity_is_met_just_if_it_can_be(problem in buffers(6, 6, 6, &[1]), less in 0..3u64) {
        let lowest = lowest_height(&problem);
        let capacity = lowest.saturating_sub(less);
        let result = place(&Problem { capacity: Some(capacity), ..problem }, &Effort::THOROUGH);
        prop_assert_eq!(result.is_ok(), capacity >= lowest);
    }

    /// Offsets at random are mostly wrong: the validator must see it just when the plain check does.
    #[test]
    fn the_validator_agrees_with_the_plain_check(
        problem in buffers(6, 8, 6, &[1, 2]),
        offsets in prop::collection::vec(0..12u64, 6),
        height in 10..20u64,
    ) {
        let offsets = offsets[..problem.buffers.len()].to_vec();
        let greedy = place(&problem, &Effort::GREEDY).unwrap();
        let solution = Solution { offsets, height, ..greedy };
        let verdict = validate(&problem, &solution);
        prop_assert_eq!(verdict.is_ok(), plainly_valid(&problem, &solution));
        if let Err(Fault::Overlap { first, second }) = verdict {
            prop_assert!(problem.buffers[first].lifespan.overlaps(problem.buffers[second].lifespan));
        }
    }
}
