//! Chains of more stages than are told apart.

use crate::stages::varied;
use plimsoll_plan::chain::{Effort, Tradeoff, simulate};

/// What merging and coarse slots lose: in a chain of 96 stages, merged to 32, at most a tenth of the cost.
#[test]
fn merging_neighbours_loses_little() {
    let stages = varied(96);
    let fine = Tradeoff::new(&stages, u64::MAX, Effort { slots: 1000, stages: 96 }).unwrap();
    let coarse = Tradeoff::new(&stages, u64::MAX, Effort { slots: 200, stages: 32 }).unwrap();
    let everything = fine.within(u64::MAX).unwrap();
    assert_eq!(coarse.within(u64::MAX), Some(everything));
    for percent in 10..100 {
        let limit = everything.peak / 100 * percent;
        let cost = coarse.within(limit).unwrap().cost;
        assert!(cost * 10 <= fine.within(limit).unwrap().cost * 11, "at {percent}%");
    }
}

#[test]
fn a_thousand_stages() {
    let stages = varied(1000);
    let tradeoff = Tradeoff::new(&stages, u64::MAX, Effort::EXPANSION).unwrap();
    let all = tradeoff.within(u64::MAX).unwrap();
    assert_eq!(all.cost, stages.iter().map(|stage| stage.forward_cost + stage.backward_cost).sum::<u64>());
    // A tenth of the memory for less than half as much work again.
    let solution = tradeoff.within(all.peak / 10).unwrap();
    assert!(solution.cost * 2 < all.cost * 3);
    assert_eq!(simulate(&stages, &solution.operations), Ok((solution.cost, solution.peak)));
}
