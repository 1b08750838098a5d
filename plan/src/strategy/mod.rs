//! How a step is run in less memory: which values are computed again instead of kept, and which gradients never exist as a
//! whole.
//!
//! A [`Strategy`] is all that the planner decides before buffers are made; the same strategy always lowers to the same steps.
//! Each way to save memory is a [`Saving`] with a file of its own here, and can be switched off by `#[without(..)]`.

pub mod cheap;
pub mod recompute;
pub mod row_tiles;
pub mod saving;
pub mod stages;

use serde::{Deserialize, Serialize};

use crate::graph::{Graph, ValueId};
use crate::lower::{self, Facts};
use crate::optimizers::Optimizer;
use crate::order::{self, Action};
use crate::placement::Live;
use crate::schedule::Schedule;
pub use saving::Saving;

/// The planner's decisions for one schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strategy {
    /// What is done, in order.
    pub order: Vec<Action>,
    /// Whether gradients are added straight to the momentum of SGD.
    pub momentum_gradients: bool,
    /// The nodes whose weight is updated a tile of rows at a time, in ascending order.
    pub row_tiles: Vec<u32>,
}

impl Strategy {
    /// A training step that saves nothing: everything that backward reads is kept, every gradient is a buffer.
    pub fn plain(facts: &Facts) -> Strategy {
        Strategy { order: order::plain(facts), momentum_gradients: false, row_tiles: Vec::new() }
    }

    /// A pass of inference.
    pub fn inference(facts: &Facts) -> Strategy {
        Strategy { order: order::forward(facts), momentum_gradients: false, row_tiles: Vec::new() }
    }

    /// A training step with every saving wherever it is possible, whether or not it lowers the peak: for proofs.
    pub fn thorough(graph: &Graph, facts: &Facts) -> Strategy {
        let momentum_gradients = gradients_suit_momentum(graph);
        let row_tiles = if momentum_gradients { Vec::new() } else { row_tiles::possible(graph, facts) };
        let dropped = cheap::candidates(graph, facts, u64::MAX);
        Strategy { order: cheap::order(graph, facts, &dropped), momentum_gradients, row_tiles }
    }

    /// Checks that this is a strategy for the network.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check(&self, graph: &Graph, facts: &Facts, training: bool) -> Result<(), String> {
        order::check(graph, facts, &self.order, training)?;
        if self.momentum_gradients && !(training && gradients_suit_momentum(graph)) {
            return Err("its gradients can't be added to a momentum".to_string());
        }
        let candidates =
            if training && !self.momentum_gradients { row_tiles::possible(graph, facts) } else { Vec::new() };
        let sorted = self.row_tiles.is_sorted_by(|a, b| a < b);
        match self.row_tiles.iter().find(|node| candidates.binary_search(node).is_err()) {
            Some(node) => Err(format!("node {node} has no weight that can be updated by rows")),
            None if !sorted => Err("the nodes that are updated by rows are not in order".to_string()),
            None => Ok(()),
        }
    }
}

/// Training steps with every saving that is not switched off, with their schedules, the best first: it drops no more values
/// than the peak asks for. Those after it are for where that one can't be placed as low as it could be.
pub struct Strategies<'g> {
    graph: &'g Graph,
    facts: &'g Facts,
    plain: Option<(Strategy, Schedule)>,
    /// Everything dropped that is cheap, with the live bytes, where there is anything.
    all: Option<(Strategy, Schedule, Live)>,
    dropped: Vec<ValueId>,
    /// The most bytes that the best of them has live at one step; `u64::MAX` where they pass 64 bits.
    pub most: u64,
    /// The parts of the peak that are left as room to spare: values kept right up to it are harder to place.
    margins: std::slice::Iter<'static, u64>,
}

impl<'g> Strategies<'g> {
    /// The strategies of a network.
    pub fn new(graph: &'g Graph, facts: &'g Facts) -> Strategies<'g> {
        const MARGINS: &[u64] = &[u64::MAX, 64, 16];
        let plain = Strategy {
            momentum_gradients: gradients_suit_momentum(graph) && graph.uses(Saving::MomentumGradients),
            ..Strategy::plain(facts)
        };
        let by_rows = graph.uses(Saving::RowTiles) && !plain.momentum_gradients;
        let row_tiles = if by_rows { row_tiles::candidates(graph, facts) } else { Vec::new() };
        let recomputes = graph.uses(Saving::CheapRecomputation);
        let dropped = if recomputes { cheap::candidates(graph, facts, cheap::limit(facts)) } else { Vec::new() };
        let with_schedule = |strategy: Strategy| {
            let schedule = lower::training(graph, facts, &strategy);
            (strategy, schedule)
        };
        let mut strategies =
            Strategies { graph, facts, plain: None, all: None, dropped, most: u64::MAX, margins: MARGINS.iter() };
        if !strategies.dropped.is_empty() || !row_tiles.is_empty() {
            let order = cheap::order(graph, facts, &strategies.dropped);
            let (all, schedule) = with_schedule(Strategy { order, row_tiles, ..plain.clone() });
            let live = Live::at(&schedule, graph.declared_batch());
            strategies.all = live.map(|(live, _)| (all, schedule, live));
        }
        let (plain, schedule) = with_schedule(plain);
        let most = Live::at(&schedule, graph.declared_batch()).map_or(u64::MAX, |(live, _)| live.most);
        // Sizes that pass 64 bits are reported when the plan is placed.
        if strategies.all.as_ref().is_none_or(|(.., all)| most <= all.most) {
            strategies.plain = Some((plain, schedule));
            strategies.margins = [].iter();
        }
        strategies.most = strategies.all.as_ref().map_or(most, |(.., all)| most.min(all.most));
        strategies
    }
}

/// The facts of a network with its nodes in the sequence that needs less, the declared one or
/// [another](order::lean_sequence), by what a sequence needs.
pub fn in_best_sequence(graph: &Graph, declared: Facts, most: impl Fn(&Facts) -> u64) -> Facts {
    let other = if graph.uses(Saving::StepOrder) { order::lean_sequence(graph, &declared) } else { None };
    match other.map(|sequence| Facts { sequence, ..declared.clone() }) {
        Some(lean) if most(&lean) < most(&declared) => lean,
        _ => declared,
    }
}

impl Iterator for Strategies<'_> {
    type Item = (Strategy, Schedule);

    fn next(&mut self) -> Option<(Strategy, Schedule)> {
        if let Some(plain) = self.plain.take() {
            return Some(plain);
        }
        let (all, schedule, live) = self.all.as_ref()?;
        for margin in self.margins.by_ref() {
            let needed = cheap::needed(self.graph, self.facts, &self.dropped, schedule, live, live.most / margin);
            let order = cheap::order(self.graph, self.facts, &needed);
            let some = Strategy { order, ..all.clone() };
            let schedule = lower::training(self.graph, self.facts, &some);
            let most = Live::at(&schedule, self.graph.declared_batch()).map(|(live, _)| live.most);
            if needed != self.dropped && most.is_some_and(|most| most <= live.most) {
                return Some((some, schedule));
            }
        }
        self.all.take().map(|(all, schedule, _)| (all, schedule))
    }
}

/// Whether `v <- momentum v + g` can be done as a sum into `v`, which the update before has already decayed. Nesterov's form
/// needs the gradient by itself, dampening scales it, and a bound on the norm scales all of them together.
fn gradients_suit_momentum(graph: &Graph) -> bool {
    let Some(training) = &graph.training else { return false };
    let plain_momentum = matches!(
        training.optimizer,
        Optimizer::Sgd { momentum, dampening, nesterov: false, .. } if momentum != 0.0 && dampening == 0.0
    );
    plain_momentum && training.clip_grad_norm.is_none()
}
