//! The least cost of every range of stages for every amount of memory.

use super::Operation;
use super::operation::{Choice, unfold};
use super::ranges::{Ranges, TOO_MUCH};

/// The solution of the recurrence of Beaumont et al. (2019), Theorem 1, by dynamic programming.
///
/// Memory is counted in slots of some bytes, and every size is rounded up to slots. Let `C(s, t, m)` be what
/// recomputation adds to the cost of the stages `s..=t`, which are reversed in `m` slots beside the input of `s`:
///
/// ```text
/// C(s, s, m) = 0                                        if m >= keep_peak(s, s), else it does not fit
/// C(s, t, m) = min of
///     C(s+1, t, m - kept(s))                            if m >= keep_peak(s, t)
///     advance_cost(s, k)                                if m >= advance_peak(s, k, t), for k = s+1..=t
///         + C(k, t, m - output(k-1)) + C(s, k-1, m)
/// ```
///
/// In the first case `s` keeps all (the paper's `F_all`). In the second `s` keeps its input (`F_ck`), the stages up to `k`
/// keep nothing (`F_none`), and the input of `k` is held until the stages from `k` on are reversed; then those before `k`
/// are, from the input of `s` anew. The paper asks for the memory to pass all of `s..t` in the second case; here it is the
/// memory to pass those before `k`, which is all that happens.
pub(super) struct Table<'a> {
    ranges: &'a Ranges<'a>,
    /// Bytes of a slot.
    slot: u64,
    /// The most slots.
    slots: usize,
    /// `C` of `first..=last` is at `first * stages + last`.
    rows: Vec<Row>,
}

/// `C` of a range, which falls as memory grows.
#[derive(Clone, Default)]
struct Row {
    /// The fewest slots that the range fits in.
    fewest: usize,
    /// The fewest slots in which all is kept.
    enough: usize,
    /// `C` from the fewest slots on. Empty if the range does not fit.
    costs: Vec<u64>,
}

impl<'a> Table<'a> {
    /// The table for up to `slots` slots of `slot` bytes. The time grows with the cube of the number of stages, and with
    /// the slots.
    pub fn new(ranges: &'a Ranges<'a>, slot: u64, slots: usize) -> Self {
        let count = ranges.stages.len();
        let mut table = Table { ranges, slot, slots, rows: vec![Row::default(); count * count] };
        for first in (0..count).rev() {
            for last in first..count {
                table.rows[first * count + last] = table.row(first, last);
            }
        }
        table
    }

    /// For each cost of the whole chain, from the highest on: the operations that need the fewest slots.
    pub fn solutions(&self) -> Vec<Vec<Operation>> {
        let count = self.ranges.stages.len();
        let Some(last) = count.checked_sub(1) else { return Vec::new() };
        let row = self.at(0, last);
        let mut lowest = TOO_MUCH;
        let mut solutions = Vec::new();
        for (index, &cost) in row.costs.iter().enumerate() {
            if cost < lowest {
                lowest = cost;
                let slots = row.fewest + index;
                solutions.push(unfold(count, slots, |first, last, slots| self.choice(first, last, slots)));
            }
        }
        solutions
    }

    fn at(&self, first: usize, last: usize) -> &Row {
        &self.rows[first * self.ranges.stages.len() + last]
    }

    /// Bytes in slots. What is more than all slots is one more than all.
    fn round_up(&self, bytes: u64) -> usize {
        usize::try_from(bytes.div_ceil(self.slot)).unwrap_or(usize::MAX).min(self.slots + 1)
    }

    /// The fewest slots in which the first stage can keep all.
    fn keep_from(&self, first: usize, last: usize) -> usize {
        let peak = self.round_up(self.ranges.keep_peak(first, last));
        if first == last {
            return peak;
        }
        peak.max(self.round_up(self.ranges.kept(first)) + self.at(first + 1, last).fewest)
    }

    /// The fewest slots in which the range can be split at `middle`, and those that hold the input of `middle`.
    fn split_from(&self, first: usize, middle: usize, last: usize) -> (usize, usize) {
        let held = self.round_up(self.ranges.stages[middle - 1].output);
        let peak = self.round_up(self.ranges.advance_peak(first, middle, last));
        let (earlier, later) = (self.at(first, middle - 1), self.at(middle, last));
        (peak.max(held + later.fewest).max(earlier.fewest), held)
    }

    fn row(&self, first: usize, last: usize) -> Row {
        let limit = self.slots + 1;
        let keep_from = self.keep_from(first, last);
        let splits: Vec<_> = (first + 1..=last).map(|middle| self.split_from(first, middle, last)).collect();
        let fewest = splits.iter().map(|split| split.0).fold(keep_from, usize::min);
        if fewest >= limit {
            return Row { fewest: limit, enough: limit, costs: Vec::new() };
        }
        let mut costs = vec![0; limit - fewest];
        if first == last {
            return Row { fewest, enough: fewest, costs };
        }

        let rest = self.at(first + 1, last);
        let kept = self.round_up(self.ranges.kept(first));
        let enough = keep_from.max(kept + rest.enough).min(limit);
        // All that is not known to be 0: first what the first stage gives that keeps all.
        let unknown = &mut costs[..enough - fewest];
        let unreachable = unknown.len().min(keep_from - fewest);
        unknown[..unreachable].fill(TOO_MUCH);
        let kept_costs = &mut unknown[unreachable..];
        if !kept_costs.is_empty() {
            let from = keep_from - kept - rest.fewest;
            kept_costs.copy_from_slice(&rest.costs[from..from + kept_costs.len()]);
        }
        for (middle, (from, held)) in (first + 1..=last).zip(splits) {
            if from >= enough {
                continue;
            }
            let advance = self.ranges.advance_cost(first, middle);
            let (earlier, later) = (self.at(first, middle - 1), self.at(middle, last));
            let earlier = &earlier.costs[from - earlier.fewest..];
            let later = &later.costs[from - held - later.fewest..];
            let split = &mut unknown[from - fewest..];
            // Nearly all the time is spent here. Without optimization a plain loop is twice as fast as iterators. Costs
            // fall as memory grows: where they are down to that of the forward passes, this split is no better any more.
            let mut slot = 0;
            while slot < split.len() && split[slot] > advance {
                let cost = advance + earlier[slot] + later[slot];
                if cost < split[slot] {
                    split[slot] = cost;
                }
                slot += 1;
            }
        }
        Row { fewest, enough, costs }
    }

    fn cost(&self, first: usize, last: usize, slots: usize) -> u64 {
        let row = self.at(first, last);
        row.costs[slots - row.fewest]
    }

    /// What makes the cost of a range. It is found once more rather than remembered: few ranges are ever asked about.
    fn choice(&self, first: usize, last: usize, slots: usize) -> Choice<usize> {
        let cost = self.cost(first, last, slots);
        for middle in first + 1..=last {
            let advance = self.ranges.advance_cost(first, middle);
            if advance > cost {
                break;
            }
            let (from, held) = self.split_from(first, middle, last);
            if slots >= from {
                let earlier = self.cost(first, middle - 1, slots);
                let later = self.cost(middle, last, slots - held);
                if cost == advance + earlier + later {
                    return Choice::Split { middle, later: slots - held };
                }
            }
        }
        Choice::Keep { rest: slots - self.round_up(self.ranges.kept(first)) }
    }
}
