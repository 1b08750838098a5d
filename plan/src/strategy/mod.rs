//! How a step is run in less memory: which values are computed again instead of kept, and which gradients never exist as a
//! whole.
//!
//! A [`Strategy`] is all that the planner decides before buffers are made; the same strategy always lowers to the same steps.
//! Each way to save memory has a name, [`Saving`], and can be switched off by `#[without(..)]`.

pub mod cheap;
pub mod concat_in_place;
pub mod recompute;
pub mod row_tiles;
pub mod saving;
pub mod sliced_loss;
pub mod stages;

use serde::{Deserialize, Serialize};

use crate::graph::{Graph, ValueId};
use crate::lower::{self, Facts};
use crate::optimizers::Optimizer;
use crate::order::{self, Action};
use crate::placement::{Live, align_up};
use crate::schedule::{Buffer, Content, Schedule};
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
    /// Whether the last layer and the loss are one step, over slices of the classes.
    pub sliced_loss: bool,
    /// Whether every concat is left out that can be.
    pub concat_in_place: bool,
}

impl Strategy {
    /// A training step that saves nothing beside what the facts say: everything that backward reads is kept, every gradient
    /// is a buffer.
    pub fn plain(facts: &Facts) -> Strategy {
        Strategy {
            order: order::plain(facts),
            momentum_gradients: false,
            row_tiles: Vec::new(),
            sliced_loss: facts.sliced_head.is_some(),
            concat_in_place: concat_in_place::is_used(facts),
        }
    }

    /// A pass of inference.
    pub fn inference(facts: &Facts) -> Strategy {
        Strategy { order: order::forward(facts), sliced_loss: false, ..Strategy::plain(facts) }
    }

    /// What is known of the network where this is how it is run.
    pub fn facts(&self, graph: &Graph, training: bool) -> Facts {
        let mut facts = Facts::new(graph, training);
        if self.concat_in_place {
            // Which concats can be left out depends on the sequence of the nodes.
            let sequence = self.sequence(&facts);
            facts = Facts { sequence, ..facts }.with_concats_in_place(graph);
        }
        if self.sliced_loss { facts.slicing_the_loss(graph) } else { facts }
    }

    /// The nodes that matter, in the order of their first forward actions; as declared, where any of them has none.
    fn sequence(&self, facts: &Facts) -> Vec<u32> {
        let mut is_new = facts.live.clone();
        let mut sequence = Vec::with_capacity(facts.sequence.len());
        for action in &self.order {
            if let Action::Forward(node) = *action
                && is_new.get_mut(node as usize).is_some_and(std::mem::take)
            {
                sequence.push(node);
            }
        }
        if sequence.len() == facts.sequence.len() { sequence } else { facts.sequence.clone() }
    }

    /// A training step with every saving wherever it is possible, whether or not it lowers the peak: for proofs. The loss is
    /// computed by slices if the facts say so.
    pub fn thorough(graph: &Graph, facts: &Facts) -> Strategy {
        let momentum_gradients = gradients_suit_momentum(graph);
        let row_tiles = if momentum_gradients { Vec::new() } else { row_tiles::possible(graph, facts) };
        let dropped = cheap::candidates(graph, facts, u64::MAX);
        let order = cheap::order(graph, facts, &dropped);
        Strategy { order, momentum_gradients, row_tiles, ..Strategy::plain(facts) }
    }

    /// Checks that this is a strategy for the network.
    ///
    /// # Errors
    /// What does not hold, in words.
    pub fn check(&self, graph: &Graph, facts: &Facts, training: bool) -> Result<(), String> {
        order::check(graph, facts, &self.order, training)?;
        if self.sliced_loss != facts.sliced_head.is_some() {
            return Err("its loss can't be computed by slices".to_string());
        }
        if self.concat_in_place != concat_in_place::is_used(facts) {
            return Err("it has no concat that can be left out".to_string());
        }
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
    /// What holds of the network where it is run so.
    pub facts: &'g Facts,
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

    /// These, or those with the loss by slices where that lowers what the trainer needs. `evaluation` is what it needs for
    /// evaluation above its own state, with whole logits.
    #[must_use]
    pub fn or_sliced(self, sliced: Option<&'g Facts>, evaluation: u64) -> Strategies<'g> {
        let Some(sliced) = sliced else { return self };
        let batch = self.graph.declared_batch();
        let live = |strategies: &Strategies| {
            let schedule = strategies.lowest()?;
            let (live, sizes) = Live::at(schedule, batch)?;
            let persistent = sizes[..schedule.persistent].iter().map(|size| align_up(*size)).sum::<Option<u64>>()?;
            Some((live.step as u32, live.most.max(persistent.saturating_add(evaluation))))
        };
        let Some((peak, most)) = live(&self) else { return self };
        let holds_logits = |buffer: &Buffer| {
            (buffer.lower..buffer.upper).contains(&peak)
                && buffer.holds.iter().any(|holding| match holding.content {
                    Content::Value(value) | Content::ValueGradient(value) => value == self.graph.output,
                    _ => false,
                })
        };
        if !self.lowest().is_some_and(|schedule| schedule.buffers.iter().any(holds_logits)) {
            return self;
        }
        let by_slices = Strategies::new(self.graph, sliced);
        if live(&by_slices).is_some_and(|(_, sliced)| sliced < most) { by_slices } else { self }
    }

    /// The steps with the fewest live bytes that are known without trying further, before any were taken.
    fn lowest(&self) -> Option<&Schedule> {
        let plain = self.plain.as_ref().map(|(_, schedule)| schedule);
        plain.or(self.all.as_ref().map(|(_, schedule, _)| schedule))
    }
}

/// The facts of a network with its nodes in the sequence that needs less, the declared one or
/// [another](order::lean_sequence), and without the concats that [need not be](concat_in_place), by what all that needs.
pub fn in_best_sequence(graph: &Graph, declared: Facts, most: impl Fn(&Facts) -> u64) -> Facts {
    let other = if graph.uses(Saving::StepOrder) { order::lean_sequence(graph, &declared) } else { None };
    let best = match other.map(|sequence| Facts { sequence, ..declared.clone() }) {
        Some(lean) if most(&lean) < most(&declared) => lean,
        _ => declared,
    };
    match concat_in_place::facts(graph, &best) {
        Some(in_place) if most(&in_place) <= most(&best) => in_place,
        _ => best,
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
