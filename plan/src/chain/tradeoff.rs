//! The cheapest sequences of operations for all limits of memory.

use super::least::least_memory;
use super::merge::Merged;
use super::ranges::{Ranges, check};
use super::table::Table;
use super::{ChainError, Keeps, Operation, Stage, simulate};

/// How fine to look. Work is counted, not timed, so that the same chain has the same solutions on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effort {
    /// The steps in which memory is counted.
    pub slots: usize,
    /// The most stages that are told apart. Neighbours in a longer chain are merged, those that keep little first.
    pub stages: usize,
}

impl Effort {
    /// For use within a procedural macro, which is compiled without optimization.
    pub const EXPANSION: Effort = Effort { slots: 200, stages: 64 };
}

/// A sequence of operations that runs every stage backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The operations.
    pub operations: Vec<Operation>,
    /// The sum of their costs.
    pub cost: u64,
    /// The most bytes at once, beside the input of the chain: exact, as [`simulate`] counts them.
    pub peak: u64,
}

/// What recomputation in a chain costs for every limit of memory.
///
/// Found with memory in [slots](Effort::slots): of 1 byte if there are as many slots as bytes, else every size is rounded up.
/// So a solution within a limit costs at most what is optimal for sizes rounded up and the limit rounded down to
/// slots. It often costs less, for its peak is then counted in bytes, and all slots of rounding that were not needed
/// are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tradeoff {
    /// Peaks rise and costs fall.
    solutions: Vec<Solution>,
}

impl Tradeoff {
    /// The solutions with peaks of up to `memory` bytes, and that of the least memory in any case.
    pub fn new(stages: &[Stage], memory: u64, effort: Effort) -> Result<Self, ChainError> {
        check(stages)?;
        let merged = Merged::new(stages, effort.stages);
        let ranges = Ranges::new(&merged.stages);
        let solution = |operations: &[Operation]| {
            let operations = merged.expand(operations);
            let (cost, peak) = simulate(stages, &operations).expect("the solver's operations are in order");
            Solution { operations, cost, peak }
        };

        let count = merged.stages.len();
        let forward = (0..count).map(|stage| Operation::Forward { stage, keeps: Keeps::All });
        let backward = (0..count).rev().map(|stage| Operation::Backward { stage });
        let everything = solution(&forward.chain(backward).collect::<Vec<_>>());
        let least = solution(&least_memory(&ranges));

        // More memory than for everything is of no use. A quarter of it lies above, for sizes are rounded up.
        let memory = memory.min(everything.peak);
        let slots = effort.slots.max(1);
        let slot = memory.div_ceil(slots as u64).max(1);
        let table = Table::new(&ranges, slot, slots + slots / 4);

        let least_peak = least.peak;
        let mut solutions = vec![everything, least];
        solutions.extend(table.solutions().iter().map(|operations| solution(operations)));
        solutions.retain(|solution| solution.peak <= memory.max(least_peak));
        solutions.sort_by_key(|solution| (solution.peak, solution.cost));
        let mut lowest = u64::MAX;
        solutions.retain(|solution| {
            let cheaper = solution.cost < lowest;
            lowest = lowest.min(solution.cost);
            cheaper
        });
        Ok(Tradeoff { solutions })
    }

    /// The cheapest solution whose peak is within `limit` bytes.
    pub fn within(&self, limit: u64) -> Option<&Solution> {
        let fitting = self.solutions.partition_point(|solution| solution.peak <= limit);
        self.solutions[..fitting].last()
    }

    /// The bytes below which there is no solution.
    pub fn least_memory(&self) -> u64 {
        self.solutions.first().map_or(0, |solution| solution.peak)
    }

    /// All solutions: from one to the next the peak rises and the cost falls.
    pub fn solutions(&self) -> &[Solution] {
        &self.solutions
    }
}
