//! The least cost of small chains, by trying all operations in all states that can be reached.

use plimsoll_plan::chain::Stage;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Which sequences are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// What is held for a backward pass stays until that pass.
    Persistent,
    /// And until then, only later stages run forward.
    Nested,
}

/// What is held between two operations. Bit `i` is the input of stage `i`, or what stage `i` saves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    /// Inputs that are held for a backward pass.
    checkpoints: u32,
    /// Stages whose saved bytes and output are held.
    saved: u32,
    /// The input of this stage is held for its next forward pass only.
    passing: Option<usize>,
    /// The stages that have not run backward.
    left: usize,
}

impl State {
    fn bytes(&self, stages: &[Stage]) -> u64 {
        let mut bytes = 0;
        for (index, stage) in stages.iter().enumerate() {
            let output_held = self.checkpoints >> (index + 1) & 1 == 1 || self.passing == Some(index + 1);
            if output_held {
                bytes += stage.output;
            }
            if self.saved >> index & 1 == 1 {
                bytes += stage.saved + stage.output;
            }
            if index >= self.left {
                bytes += stage.parameter_gradients;
            }
            if index + 1 == self.left && self.left < stages.len() {
                bytes += stage.output_gradient;
            }
        }
        bytes
    }

    /// All operations: the most bytes during each, its cost and the state after it.
    fn next(&self, stages: &[Stage], class: Class) -> Vec<(u64, u64, State)> {
        let held = self.bytes(stages);
        let mut next = Vec::new();
        for (index, stage) in stages.iter().enumerate().take(self.left) {
            let nested = class == Class::Persistent || self.checkpoints >> (index + 1) == 0 && self.saved >> index == 0;
            if !nested {
                continue;
            }
            let persistent = index == 0 || self.checkpoints >> index & 1 == 1 || self.saved >> (index - 1) & 1 == 1;
            let passing = self.passing == Some(index);
            let free = self.passing.is_none() || passing;
            // Something else that passes would be lost: its forward passes were for nothing.
            if !(free && (persistent || passing)) {
                continue;
            }
            let with_input = match persistent {
                true => *self,
                false => State { checkpoints: self.checkpoints | 1 << index, passing: None, ..*self },
            };
            // Keep all.
            let after = State { saved: self.saved | 1 << index, ..with_input };
            next.push((held + stage.saving_peak, stage.forward_cost, after));
            // Keep the input, or nothing if it only passes.
            let after = State { passing: Some(index + 1), ..with_input };
            next.push((held + stage.forward_peak, stage.forward_cost, after));
            if passing && !persistent {
                let after = State { passing: Some(index + 1), ..*self };
                next.push((held + stage.forward_peak, stage.forward_cost, after));
            }
        }
        // Backward.
        let index = self.left - 1;
        let stage = &stages[index];
        let input = index == 0 || self.checkpoints >> index & 1 == 1 || self.saved >> (index - 1) & 1 == 1;
        if self.saved >> index & 1 == 1 && input && self.passing.is_none() {
            let own = stage.saved + stage.output;
            let others = held - own - if self.left < stages.len() { stage.output_gradient } else { 0 };
            let during = others + stage.backward_peak.max(own + stage.output_gradient);
            let after = State {
                checkpoints: self.checkpoints & !(1 << index),
                saved: self.saved & !(1 << index),
                passing: None,
                left: index,
            };
            next.push((during, stage.backward_cost, after));
        }
        next
    }
}

/// The least cost of any sequence of a class within `limit` bytes: Dijkstra's shortest path from nothing run to all run
/// backward.
pub fn least_cost(stages: &[Stage], limit: u64, class: Class) -> Option<u64> {
    let start = State { checkpoints: 0, saved: 0, passing: None, left: stages.len() };
    let mut costs = HashMap::from([(start, 0)]);
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((cost, state))) = queue.pop() {
        if state.left == 0 {
            return Some(cost);
        }
        if cost > costs[&state] {
            continue;
        }
        for (during, price, after) in state.next(stages, class) {
            let fits = during <= limit && after.bytes(stages) <= limit;
            let known = costs.get(&after).copied().unwrap_or(u64::MAX);
            if fits && cost + price < known {
                costs.insert(after, cost + price);
                queue.push(Reverse((cost + price, after)));
            }
        }
    }
    None
}
