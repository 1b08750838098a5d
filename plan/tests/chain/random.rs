//! Random chains.

use crate::brute_force::{Class, least_cost};
use crate::{EXACT, segments};
use plimsoll_plan::chain::{Effort, Stage, Tradeoff, simulate};
use proptest::prelude::*;

/// Sizes of up to `most` bytes. Peaks may be below what is held before or after: the solver must count that itself.
fn chains(count: impl Into<prop::collection::SizeRange>, most: u64) -> impl Strategy<Value = Vec<Stage>> {
    let sizes = (0..=most, 0..=most, 0..=most, 0..=5 * most, 0..=3 * most, 0..=4 * most, 0..=most / 2);
    let stage = (sizes, 0..6u64, 0..6u64).prop_map(|(sizes, forward_cost, backward_cost)| Stage {
        forward_cost,
        backward_cost,
        output: sizes.0,
        output_gradient: sizes.1,
        saved: sizes.2,
        forward_peak: sizes.3,
        saving_peak: sizes.4,
        backward_peak: sizes.5,
        parameter_gradients: sizes.6,
    });
    prop::collection::vec(stage, count)
}

/// Costs fall as limits rise: they agree everywhere if they do at each peak, right below it and without a limit.
fn costs_the_least(stages: &[Stage], class: Class) -> Result<(), TestCaseError> {
    let tradeoff = Tradeoff::new(stages, 400, EXACT).unwrap();
    let peaks = tradeoff.solutions().iter().map(|solution| solution.peak);
    for limit in peaks.flat_map(|peak| [peak.saturating_sub(1), peak]).chain([u64::MAX]) {
        let cost = tradeoff.within(limit).map(|solution| solution.cost);
        prop_assert_eq!(cost, least_cost(stages, limit, class), "within {}", limit);
    }
    Ok(())
}

proptest! {
    // Brute force takes its time.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    #[test]
    fn small_chains_cost_the_least_within_every_limit(stages in chains(1..=6, 8)) {
        costs_the_least(&stages, Class::Nested)?;
    }

    /// A gradient has the size of its value, or there is none, and parameters are updated at once: then nested sequences are the best of all persistent ones.
    #[test]
    fn no_other_persistent_sequence_is_better(
        mut stages in chains(1..=5, 8),
        gradients in prop::collection::vec(prop::bool::weighted(0.9), 5),
    ) {
        for (stage, gradient) in stages.iter_mut().zip(gradients) {
            stage.output_gradient = if gradient { stage.output } else { 0 };
            stage.parameter_gradients = 0;
        }
        costs_the_least(&stages, Class::Persistent)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rounding_costs_no_more_than_sizes_that_are_rounded_up(stages in chains(1..=5, 50), slots in 5..40usize) {
        let memory = 150u64;
        let tradeoff = Tradeoff::new(&stages, memory, Effort { slots, ..EXACT }).unwrap();
        // However coarse, the least memory is exact.
        let least = tradeoff.least_memory();
        prop_assert!(least_cost(&stages, least, Class::Nested).is_some());
        prop_assert_eq!(least.checked_sub(1).and_then(|below| least_cost(&stages, below, Class::Nested)), None);
        // Slots may be finer than this: there is no need for more memory than for everything.
        let slot = memory.div_ceil(slots as u64);
        let up = |size: u64| size.next_multiple_of(slot);
        let rounded: Vec<_> = stages.iter().map(|stage| Stage {
            output: up(stage.output),
            output_gradient: up(stage.output_gradient),
            saved: up(stage.saved),
            forward_peak: up(stage.forward_peak),
            saving_peak: up(stage.saving_peak),
            backward_peak: up(stage.backward_peak),
            parameter_gradients: up(stage.parameter_gradients),
            ..*stage
        }).collect();
        for limit in (0..=memory).step_by(7) {
            let cost = tradeoff.within(limit).map(|solution| solution.cost);
            let at_best = least_cost(&stages, limit, Class::Nested);
            let at_worst = least_cost(&rounded, limit / slot * slot, Class::Nested);
            prop_assert!(cost.is_some() == at_best.is_some(), "within {}", limit);
            prop_assert!(cost >= at_best && cost.unwrap_or(0) <= at_worst.unwrap_or(u64::MAX), "within {}", limit);
        }
    }

    #[test]
    fn solutions_are_what_they_say_and_repeatable(
        stages in chains(0..=24, 1_000_000),
        memory in 0..40_000_000u64,
        slots in 0..60usize,
        most in 0..30usize,
    ) {
        let effort = Effort { slots, stages: most };
        let tradeoff = Tradeoff::new(&stages, memory, effort).unwrap();
        for (index, solution) in tradeoff.solutions().iter().enumerate() {
            prop_assert_eq!(simulate(&stages, &solution.operations), Ok((solution.cost, solution.peak)));
            prop_assert!(solution.peak <= memory.max(tradeoff.least_memory()));
            prop_assert_eq!(tradeoff.within(solution.peak), Some(solution));
            let below = index.checked_sub(1).map(|below| &tradeoff.solutions()[below]);
            prop_assert!(below.is_none_or(|below| below.peak < solution.peak && below.cost > solution.cost));
            prop_assert_eq!(solution.peak.checked_sub(1).and_then(|limit| tradeoff.within(limit)), below);
        }
        prop_assert_eq!(Tradeoff::new(&stages, memory, effort).unwrap(), tradeoff);
    }

    /// Chen et al. (2016): segments of about the square root of the number of stages.
    #[test]
    fn segments_of_the_square_root_are_never_better(stages in chains(1..=30, 8)) {
        let length = (1..).find(|length| length * length >= stages.len()).unwrap();
        let (cost, peak) = simulate(&stages, &segments(stages.len(), length)).unwrap();
        let tradeoff = Tradeoff::new(&stages, peak, Effort { slots: peak as usize, ..EXACT }).unwrap();
        prop_assert!(tradeoff.within(peak).unwrap().cost <= cost);
    }
}
