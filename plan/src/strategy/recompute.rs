//! `#[budget(.., recompute)]`: activations are dropped and computed again until the step fits, at the least extra compute.
//!
//! Three kinds of orders are tried, and each is lowered: the bytes that are live in its real steps decide, not a model.
//! - Where the network can be cut into a chain of stages, those of the optimal dynamic program for chains
//!   ([`chain`](crate::chain)).
//! - Where it can't, a local search: of the values that are live at the peak, those are dropped first that free the most
//!   bytes for their compute.
//! - Segments of equal length, of which only the ends are kept (Chen et al. 2016, "Training deep nets with sublinear memory
//!   cost"), for which the square root of the number of layers is the known choice: nothing is ever worse than these.

use std::rc::Rc;

use super::stages::{self, Nodes};
use super::{Strategy, cheap};
use crate::chain::{Operation, Stage, Tradeoff};
use crate::graph::{Graph, ValueId};
use crate::known::Known;
use crate::lower::{self, Facts};
use crate::order::Action;
use crate::placement::Live;
use crate::schedule::{Content, Schedule};

/// A way to run the step.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The way.
    pub strategy: Strategy,
    /// The most bytes live at one step.
    pub most: u64,
    /// What is computed again, in the unit of [`Facts::cost`].
    pub cost: u64,
}

impl Candidate {
    /// Whether it is cheaper within a limit, or nearer to it where neither is.
    fn is_better(&self, other: &Candidate, limit: u64) -> bool {
        match (self.most <= limit, other.most <= limit) {
            (true, true) => self.cost < other.cost,
            (false, false) => self.most < other.most,
            (fits, _) => fits,
        }
    }
}

/// The search for one network.
pub struct Search<'g> {
    graph: &'g Graph,
    facts: &'g Facts,
    known: &'g Known,
    /// All decisions but the order.
    base: Strategy,
    /// For each value, whether backward reads it.
    saved: Vec<bool>,
    /// Values that cost little to compute again.
    cheap: Vec<ValueId>,
    chain: Option<Chain>,
}

/// The network as a chain, with all that the dynamic program knows of it.
struct Chain {
    stages: Vec<Nodes>,
    /// The solutions for what is known of the steps within the stages, and those where only what is held between them
    /// counts: the first is never too low, the second never too high.
    tradeoffs: [Rc<Tradeoff>; 2],
    dropped: Vec<ValueId>,
}

/// Chains of so many stages are left to the dynamic program.
const SHORT_CHAIN: usize = 8;

/// How many actions the local search lowers in all.
const ATTEMPTS: usize = 40_000;

impl<'g> Search<'g> {
    /// Prepares the search. `base` has the decisions beside the order; `most` is what the step needs without recomputation.
    pub fn new(graph: &'g Graph, facts: &'g Facts, known: &'g Known, base: Strategy, most: u64) -> Search<'g> {
        let saved = cheap::saved(graph, facts);
        let cheap = cheap::candidates(graph, facts, cheap::limit(facts));
        let chain = Chain::new(graph, facts, known, &saved, &cheap, &base, most);
        Search { graph, facts, known, base, saved, cheap, chain }
    }

    /// The cheapest way that is found to stay within `limit` live bytes.
    pub fn within(&self, limit: u64) -> Option<Candidate> {
        let found = [self.of_chain(limit), self.local_search(limit), self.segments(limit)];
        found.into_iter().flatten().filter(|way| way.most <= limit).min_by_key(|way| way.cost)
    }

    /// The way that needs the least memory of all that are known.
    pub fn least(&self) -> Option<Candidate> {
        let found = [self.of_chain(0), self.least_by_local_search(), self.segments(0)];
        found.into_iter().flatten().min_by_key(|way| way.most)
    }

    fn candidate(&self, order: Vec<Action>) -> Option<Candidate> {
        let strategy = Strategy { order, ..self.base.clone() };
        let schedule = self.known.training(self.graph, self.facts, &strategy);
        let (live, _) = Live::at(&schedule, self.graph.declared_batch())?;
        let cost = again(self.facts, &strategy.order);
        Some(Candidate { strategy, most: live.most, cost })
    }

    /// The cheapest solution of the dynamic program whose real steps stay within the limit, or the one of least memory.
    fn of_chain(&self, limit: u64) -> Option<Candidate> {
        let chain = self.chain.as_ref()?;
        let mut best: Option<Candidate> = None;
        for tradeoff in &chain.tradeoffs {
            // Peaks rise and costs fall along the solutions.
            let solutions = tradeoff.solutions();
            let (mut low, mut high) = (0, solutions.len());
            while low < high {
                let middle = low + (high - low) / 2;
                let order = chain.order(self.graph, self.facts, &self.saved, &solutions[middle].operations);
                let way = self.candidate(order)?;
                if way.most <= limit {
                    low = middle + 1;
                } else {
                    high = middle;
                }
                if best.as_ref().is_none_or(|best| way.is_better(best, limit)) {
                    best = Some(way);
                }
            }
        }
        best
    }

    /// Segments of several lengths: the cheapest within the limit, or the one of least memory.
    fn segments(&self, limit: u64) -> Option<Candidate> {
        self.all_segments().reduce(|best, way| if way.is_better(&best, limit) { way } else { best })
    }

    /// Segments that stay within a limit, the cheapest first.
    pub fn segments_within(&self, limit: u64) -> Vec<Candidate> {
        let mut ways: Vec<Candidate> = self.all_segments().filter(|way| way.most <= limit).collect();
        ways.sort_by_key(|way| way.cost);
        ways
    }

    /// Segments of several lengths.
    fn all_segments(&self) -> impl Iterator<Item = Candidate> {
        let values = (0..self.graph.types.len() as u32).map(ValueId);
        let kept: Vec<ValueId> =
            values.filter(|value| value.index() >= self.graph.inputs.len() && self.saved[value.index()]).collect();
        let root = kept.len().isqrt().max(1);
        let lengths = [2, root / 2, root, 2 * root, kept.len()];
        lengths.into_iter().filter(|length| *length > 1).filter_map(move |length| {
            let inside = |(i, _): &(usize, &ValueId)| (i + 1) % length != 0;
            let dropped: Vec<ValueId> = kept.iter().enumerate().filter(inside).map(|(_, value)| *value).collect();
            self.candidate(cheap::order(self.graph, self.facts, &dropped))
        })
    }

    /// The least memory that the local search reaches, from one limit to a lower one.
    fn least_by_local_search(&self) -> Option<Candidate> {
        let mut best = self.local_search(u64::MAX)?;
        while let Some(lower) = self.local_search(best.most - best.most / 16).filter(|way| way.most < best.most) {
            best = lower;
        }
        Some(best)
    }

    /// Drops and keeps one value after another, whichever change brings most for what it costs, until the limit is kept or
    /// nothing helps. Every change is judged by lowering it.
    fn local_search(&self, limit: u64) -> Option<Candidate> {
        // A chain is solved better already.
        if self.chain.as_ref().is_some_and(|chain| chain.stages.len() >= SHORT_CHAIN) {
            return None;
        }
        let mut attempts = ATTEMPTS / self.base.order.len().max(1);
        let mut state = Dropped { values: self.cheap.clone(), forgotten: Vec::new() };
        let mut best = self.judge(&state, limit)?;
        while best.excess > 0 && attempts > 0 {
            let mut chosen: Option<(f64, Dropped, Judged)> = None;
            for changed in self.changes(&state, &best.waiting) {
                if attempts == 0 {
                    break;
                }
                attempts -= 1;
                let judged = self.judge(&changed, limit)?;
                if judged.excess >= best.excess {
                    continue;
                }
                let gain = (best.excess - judged.excess) as f64;
                let worth = gain / (judged.way.cost.saturating_sub(best.way.cost) + 1) as f64;
                if chosen.as_ref().is_none_or(|(most, ..)| worth > *most) {
                    chosen = Some((worth, changed, judged));
                }
            }
            match chosen {
                Some((_, changed, judged)) => (state, best) = (changed, judged),
                None => break,
            }
        }
        Some(best.way)
    }

    /// A state with one more value dropped, or with one that is dropped forgotten as soon as it has been used.
    fn changes(&self, state: &Dropped, waiting: &[ValueId]) -> Vec<Dropped> {
        let mut changes = Vec::new();
        for &value in waiting {
            let mut changed = state.clone();
            let list = match state.values.binary_search(&value) {
                Err(_) => &mut changed.values,
                Ok(_) => &mut changed.forgotten,
            };
            if let Err(at) = list.binary_search(&value) {
                list.insert(at, value);
                changes.push(changed);
            }
        }
        changes
    }

    /// Lowers a state.
    fn judge(&self, state: &Dropped, limit: u64) -> Option<Judged> {
        let order = cheap::order_forgetting(self.graph, self.facts, &state.values, &state.forgotten);
        let strategy = Strategy { order, ..self.base.clone() };
        let schedule = lower::training(self.graph, self.facts, &strategy);
        let (live, _) = Live::at(&schedule, self.graph.declared_batch())?;
        let excess = live.steps.iter().map(|bytes| u128::from(bytes.saturating_sub(limit))).sum();
        let cost = again(self.facts, &strategy.order);
        let waiting = self.waiting(&schedule, &live);
        Some(Judged { way: Candidate { strategy, most: live.most, cost }, excess, waiting })
    }

    /// The values that backward reads and that are live at the peak.
    fn waiting(&self, schedule: &Schedule, live: &Live) -> Vec<ValueId> {
        let peak = live.step as u32;
        let live = schedule.buffers[schedule.persistent..].iter().filter(|b| (b.lower..b.upper).contains(&peak));
        let mut waiting: Vec<ValueId> = live
            .filter_map(|buffer| match buffer.holds.iter().rev().find(|holding| holding.from <= peak)?.content {
                Content::Value(value) if value.index() >= self.graph.inputs.len() => Some(value),
                _ => None,
            })
            .filter(|value| self.saved[value.index()])
            .collect();
        waiting.sort_unstable();
        waiting.dedup();
        waiting
    }
}

/// What the local search changes.
#[derive(Clone)]
struct Dropped {
    /// The values that are dropped.
    values: Vec<ValueId>,
    /// Those of them that, computed again for the sake of another value, are dropped again.
    forgotten: Vec<ValueId>,
}

struct Judged {
    way: Candidate,
    /// The bytes above the limit, summed over all steps.
    excess: u128,
    waiting: Vec<ValueId>,
}

impl Chain {
    fn new(
        graph: &Graph,
        facts: &Facts,
        known: &Known,
        saved: &[bool],
        cheap: &[ValueId],
        base: &Strategy,
        most: u64,
    ) -> Option<Chain> {
        let stages = stages::cut(graph, facts);
        if stages.len() < 2 || !stages::is_whole(facts, &stages) {
            return None;
        }
        // What a stage hands on is a checkpoint, and no stage computes it again for itself.
        let is_handed_on = |value: &ValueId| stages.iter().any(|stage| stage.output == *value);
        let dropped: Vec<ValueId> = cheap.iter().copied().filter(|value| !is_handed_on(value)).collect();
        let mut is_kept = saved.to_vec();
        dropped.iter().for_each(|value| is_kept[value.index()] = false);
        let sizes = stages::stages(graph, facts, &stages, &is_kept, !base.momentum_gradients)?;
        let held: Vec<Stage> =
            sizes.iter().map(|stage| Stage { forward_peak: 0, saving_peak: 0, backward_peak: 0, ..*stage }).collect();
        Some(Chain { stages, tradeoffs: [known.tradeoff(sizes, most)?, known.tradeoff(held, most)?], dropped })
    }

    /// The operations on stages as actions of nodes.
    fn order(&self, graph: &Graph, facts: &Facts, saved: &[bool], operations: &[Operation]) -> Vec<Action> {
        let mut order = Vec::new();
        let mut there = cheap::there(graph, saved, &self.dropped);
        self.stages.iter().for_each(|stage| there[stage.output.index()] = true);
        let mut lost = false;
        for operation in operations {
            match *operation {
                Operation::Forward { stage, .. } => order.extend(stages::forward(&self.stages[stage])),
                Operation::Backward { stage } => {
                    if !std::mem::replace(&mut lost, true) {
                        order.push(Action::Loss);
                    }
                    for node in stages::backward(facts, &self.stages[stage]) {
                        cheap::backward(graph, facts, node, &mut there, &mut order);
                    }
                }
            }
        }
        order
    }
}

/// What an order computes again.
pub fn again(facts: &Facts, order: &[Action]) -> u64 {
    let mut computed = vec![false; facts.cost.len()];
    let mut cost = 0u64;
    for action in order {
        if let Action::Forward(node) = *action
            && std::mem::replace(&mut computed[node as usize], true)
        {
            cost = cost.saturating_add(facts.cost[node as usize]);
        }
    }
    cost
}
