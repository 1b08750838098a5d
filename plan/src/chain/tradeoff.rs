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
    /// The most stages that are told apart: the time grows with their cube. In a longer chain neighbours are merged, such
    /// that the most bytes kept by one of them are as few as can be. What lies within is then kept, dropped and computed
    /// together, and the least memory is that of the merged chain.
    pub stages: usize,
}

impl Effort {
    /// For use within a procedural macro, which is compiled without optimization: some tenths of a second at most. The
    /// cost within a limit that is given as `memory` is about 1 % above that of finer solutions at most, as measured.
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
/// Memory is counted in slots, a part of the largest limit: of 1 byte if that is enough, else every size is rounded up to
/// slots. So a solution costs at most what is optimal for rounded sizes within the limit, rounded down. It often costs
/// less, for solutions are made for a quarter more slots and each is judged by its peak in bytes. The least memory is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tradeoff {
    /// Peaks rise and costs fall.
    solutions: Vec<Solution>,
}

impl Tradeoff {
    /// The solutions with peaks of up to `memory` bytes, and that of the least memory in any case. The closer `memory` is to
    /// the limit that matters, the finer the slots.
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

        // More memory than for everything is of no use.
        let memory = memory.min(everything.peak);
        let slot = memory.div_ceil(effort.slots.max(1) as u64).max(1);
        let slots = memory.div_ceil(slot) as usize;
        // A quarter more: sizes that are rounded up may take that many slots and still fit.
        let table = Table::new(&ranges, slot, if slot == 1 { slots } else { slots + slots / 4 });

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
