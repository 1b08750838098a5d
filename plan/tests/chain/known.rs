//! Chains whose solution is known from elsewhere, or by hand.

use crate::{EXACT, backward, forward, segments, stage};
use plimsoll_plan::chain::{ChainError, Effort, Keeps, Stage, Tradeoff, simulate};

#[test]
fn a_chain_of_no_stages_costs_nothing() {
    let tradeoff = Tradeoff::new(&[], 100, EXACT).unwrap();
    let solution = tradeoff.within(0).unwrap();
    assert_eq!((solution.operations.len(), solution.cost, solution.peak), (0, 0, 0));
    assert_eq!(tradeoff.least_memory(), 0);
}

#[test]
fn one_stage_runs_forward_and_backward() {
    // 5 saved, the output of 3 and its gradient.
    let tradeoff = Tradeoff::new(&[stage(4, 3, 5)], 100, EXACT).unwrap();
    let solution = tradeoff.within(100).unwrap();
    assert_eq!(solution.operations, [forward(0, Keeps::All), backward(0)]);
    assert_eq!((solution.cost, solution.peak), (4 + 8, 11));
    assert_eq!(tradeoff.least_memory(), 11);
    assert_eq!(tradeoff.within(11), Some(solution));
    assert_eq!(tradeoff.within(10), None);
}

#[test]
fn with_enough_memory_nothing_runs_twice() {
    let stages = [stage(3, 10, 20), stage(5, 7, 0), stage(2, 1, 9)];
    let tradeoff = Tradeoff::new(&stages, 1_000, EXACT).unwrap();
    let solution = tradeoff.within(u64::MAX).unwrap();
    let all = [0, 1, 2].map(|stage| forward(stage, Keeps::All)).into_iter().chain([2, 1, 0].map(backward));
    assert_eq!(solution.operations, all.collect::<Vec<_>>());
    // 30 + 7 bytes are kept while the last stage runs backward in 9 + 1 + 1.
    assert_eq!((solution.cost, solution.peak), (30, 48));
}

/// The binomial numbers of Griewank and Walther, "Algorithm 799: revolve" (2000): with `c` checkpoints, the first of
/// them the input of the chain, `l` equal steps take at least `r * l - beta(c + 1, r - 1)` extra forward steps, where
/// `beta(c, r) = (c + r)! / (c! r!)` and `r` is the least number with `l <= beta(c, r)`.
#[test]
fn equal_stages_take_the_extra_steps_of_revolve() {
    // `beta` for `r = -1` is 0.
    let beta = |c: u64, r: u64| (1..=c).fold(1, |product, i| product * (r + i) / i);
    let extra = |l: u64, c: u64| {
        let r = (0..).find(|&r| l <= beta(c, r)).unwrap();
        r * l - if r == 0 { 0 } else { beta(c + 1, r - 1) }
    };
    // Figures of the paper and by hand: the formula itself is right.
    assert_eq!((extra(10, 3), extra(2, 1), extra(6, 1), extra(7, 7)), (15, 1, 15, 6));

    for steps in 1..=24u64 {
        for checkpoints in 1..=8 {
            // A stage saves so much that no two can at once, and a gradient is nothing. A checkpoint is 1 byte, and one
            // byte more is the input of the stage that runs backward, which revolve does not count. It does count the
            // input of the chain, which is no byte here.
            let step = Stage { output_gradient: 0, backward_cost: 0, backward_peak: 51, ..stage(1, 1, 50) };
            let memory = 51 + checkpoints;
            let tradeoff = Tradeoff::new(&vec![step; steps as usize], memory, EXACT).unwrap();
            let solution = tradeoff.within(memory).unwrap();
            assert_eq!(solution.cost, steps + extra(steps, checkpoints), "{steps} steps, {checkpoints} checkpoints");
        }
    }
}

/// A checkpoint of 1 byte in place of one of 100: by hand.
#[test]
fn the_smallest_value_is_held() {
    let stages = [stage(1, 100, 0), stage(1, 1, 0), stage(1, 100, 0), stage(1, 1, 0)];
    let tradeoff = Tradeoff::new(&stages, 400, EXACT).unwrap();
    // While the third runs backward in its output and that output's gradient, its input of 1 is held: no less is possible.
    let solution = tradeoff.within(201).unwrap();
    assert_eq!(
        solution.operations,
        [
            forward(0, Keeps::Input),
            forward(1, Keeps::Nothing),
            forward(2, Keeps::All),
            forward(3, Keeps::All),
            backward(3),
            backward(2),
            forward(0, Keeps::All),
            forward(1, Keeps::All),
            backward(1),
            backward(0),
        ]
    );
    assert_eq!((solution.cost, solution.peak), (4 + 8 + 2, 201));
    assert_eq!(tradeoff.least_memory(), 200 + 1);
}

/// Never worse than checkpoints at every length of segments, the square root among them: 36 stages, 1 to 36.
#[test]
fn equal_segments_are_never_better() {
    let stages = vec![stage(1, 1, 3); 36];
    let tradeoff = Tradeoff::new(&stages, 200, EXACT).unwrap();
    for length in 1..=36 {
        let (cost, peak) = simulate(&stages, &segments(36, length)).unwrap();
        let solution = tradeoff.within(peak).unwrap();
        assert!(solution.cost <= cost, "{} > {cost} with segments of {length}", solution.cost);
    }
    // Segments of 6 by hand: 5 checkpoints, 5 stages kept, the last runs backward in 5. All but the last 6 run twice.
    assert_eq!(simulate(&stages, &segments(36, 6)), Ok((36 * 3 + 30, 5 + 5 * 4 + 5)));
}

#[test]
fn sizes_and_costs_at_the_end_of_a_u64_are_errors() {
    let new = |stages: &[Stage]| Tradeoff::new(stages, u64::MAX, Effort::EXPANSION);
    let large = Stage { saved: u64::MAX, ..stage(1, 1, 1) };
    assert_eq!(new(&[stage(1, 1, 1), large]), Err(ChainError::TooLarge { stage: 1 }));
    let half = Stage { backward_peak: 1 << 61, ..Stage::default() };
    assert_eq!(new(&[half, half]), Err(ChainError::TooLarge { stage: 1 }));
    assert_eq!(new(&[half]).unwrap().least_memory(), 1 << 61);
    let costly = Stage { forward_cost: u64::MAX, ..stage(1, 1, 1) };
    assert_eq!(new(&[costly]), Err(ChainError::TooCostly { stage: 0 }));
    let costly = Stage { backward_cost: 1 << 60, ..stage(1, 1, 1) };
    assert_eq!(new(&[costly; 2]), Err(ChainError::TooCostly { stage: 1 }));
    assert_eq!(new(&[costly]).unwrap().within(u64::MAX).unwrap().cost, (1 << 60) + 1);
    assert_eq!(
        ChainError::TooLarge { stage: 1 }.to_string(),
        "the sizes of the stages add up to 2^62 bytes or more at stage 1"
    );
}

#[test]
fn the_largest_sizes_work() {
    let stages = vec![stage(1 << 40, 1 << 52, 1 << 53); 64];
    let tradeoff = Tradeoff::new(&stages, u64::MAX, Effort::EXPANSION).unwrap();
    assert_eq!(tradeoff.within(u64::MAX).unwrap().cost, (64 * 3) << 40);
    assert!(tradeoff.least_memory() >= 1 << 54);
}
