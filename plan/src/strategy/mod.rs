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

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::graph::{Graph, ValueId};
use crate::known::Known;
use crate::lower::Facts;
use crate::optimizers::Optimizer;
use crate::order::{self, Action};
use crate::placement::Live;
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
    known: &'g Known,
    /// What holds of the network where it is run so.
    pub facts: Rc<Facts>,
    plain: Option<(Strategy, Rc<Schedule>)>,
    /// Everything dropped that is cheap, with the live bytes, where there is anything.
    all: Option<(Strategy, Rc<Schedule>, Live)>,
    dropped: Vec<ValueId>,
    /// The most bytes that the best of them has live at one step; `u64::MAX` where they pass 64 bits.
    most: u64,
    /// The parts of the peak that are left as room to spare: values kept right up to it are harder to place.
    margins: std::slice::Iter<'static, u64>,
}

impl<'g> Strategies<'g> {
    /// The strategies of a network, its nodes in the sequence and its loss in the way that need less. `evaluation` is what the
    /// trainer needs for evaluation above its own state, with whole logits.
    pub fn new(graph: &'g Graph, known: &'g Known, evaluation: u64) -> Strategies<'g> {
        let of = |facts| {
            let whole = Strategies::of(graph, facts, known);
            whole.sliced(evaluation).unwrap_or(whole)
        };
        in_best_sequence(graph, Facts::new(graph, true), of, |strategies| strategies.most)
    }

    /// The strategies in the sequence of the facts.
    fn of(graph: &'g Graph, facts: Facts, known: &'g Known) -> Strategies<'g> {
        const MARGINS: &[u64] = &[u64::MAX, 64, 16];
        let plain = Strategy {
            momentum_gradients: gradients_suit_momentum(graph) && graph.uses(Saving::MomentumGradients),
            ..Strategy::plain(&facts)
        };
        let by_rows = graph.uses(Saving::RowTiles) && !plain.momentum_gradients;
        let row_tiles = if by_rows { row_tiles::candidates(graph, &facts) } else { Vec::new() };
        let recomputes = graph.uses(Saving::CheapRecomputation);
        let dropped = if recomputes { cheap::candidates(graph, &facts, cheap::limit(&facts)) } else { Vec::new() };
        let mut all = None;
        if !dropped.is_empty() || !row_tiles.is_empty() {
            let strategy = Strategy { order: cheap::order(graph, &facts, &dropped), row_tiles, ..plain.clone() };
            let schedule = known.training(graph, &facts, &strategy);
            let live = Live::at(&schedule, graph.declared_batch());
            all = live.map(|(live, _)| (strategy, schedule, live));
        }
        let schedule = known.training(graph, &facts, &plain);
        let most = Live::at(&schedule, graph.declared_batch()).map_or(u64::MAX, |(live, _)| live.most);
        let mut strategies = Strategies {
            graph,
            known,
            facts: Rc::new(facts),
            plain: None,
            all,
            dropped,
            most,
            margins: MARGINS.iter(),
        };
        // Sizes that pass 64 bits are reported when the plan is placed.
        match &strategies.all {
            Some((.., all)) if all.most < most => strategies.most = all.most,
            _ => (strategies.plain, strategies.margins) = (Some((plain, schedule)), [].iter()),
        }
        strategies
    }

    /// Those with the loss by slices, where that lowers what the trainer needs.
    fn sliced(&self, evaluation: u64) -> Option<Strategies<'g>> {
        let batch = self.graph.declared_batch();
        let live = |strategies: &Strategies| {
            let schedule = strategies.lowest()?;
            let (live, _) = Live::at(schedule, batch)?;
            Some((live.step as u32, live.most.max(live.persistent.saturating_add(evaluation))))
        };
        let facts = sliced_loss::facts(self.graph, &self.facts)?;
        let (peak, most) = live(self)?;
        let holds_logits = |buffer: &Buffer| {
            (buffer.lower..buffer.upper).contains(&peak)
                && buffer.holds.iter().any(|holding| match holding.content {
                    Content::Value(value) | Content::ValueGradient(value) => value == self.graph.output,
                    _ => false,
                })
        };
        if !self.lowest()?.buffers.iter().any(holds_logits) {
            return None;
        }
        let by_slices = Strategies::of(self.graph, facts, self.known);
        live(&by_slices).is_some_and(|(_, sliced)| sliced < most).then_some(by_slices)
    }

    /// The steps with the fewest live bytes that are known without trying further, before any were taken.
    fn lowest(&self) -> Option<&Schedule> {
        let plain = self.plain.as_ref().map(|(_, schedule)| &**schedule);
        plain.or(self.all.as_ref().map(|(_, schedule, _)| &**schedule))
    }
}

/// What is made `of` a network with its nodes in the sequence that needs less, the declared one or
/// [another](order::lean_sequence), in either without the concats that [need not be](concat_in_place) if that needs no more,
/// by the `most` bytes live at one step.
pub fn in_best_sequence<T>(graph: &Graph, declared: Facts, of: impl Fn(Facts) -> T, most: impl Fn(&T) -> u64) -> T {
    let best_of = |whole: Facts| {
        let in_place = concat_in_place::facts(graph, &whole).map(&of);
        let whole = of(whole);
        in_place.filter(|in_place| most(in_place) <= most(&whole)).unwrap_or(whole)
    };
    let other = if graph.uses(Saving::StepOrder) { order::lean_sequence(graph, &declared) } else { None };
    let lean = other.map(|sequence| best_of(Facts { sequence, ..declared.clone() }));
    let declared = best_of(declared);
    lean.filter(|lean| most(lean) < most(&declared)).unwrap_or(declared)
}

impl Iterator for Strategies<'_> {
    type Item = (Strategy, Rc<Schedule>);

    fn next(&mut self) -> Option<(Strategy, Rc<Schedule>)> {
        if let Some(plain) = self.plain.take() {
            return Some(plain);
        }
        let (all, schedule, live) = self.all.as_ref()?;
        for margin in self.margins.by_ref() {
            let needed = cheap::needed(self.graph, &self.facts, &self.dropped, schedule, live, live.most / margin);
            let order = cheap::order(self.graph, &self.facts, &needed);
            let some = Strategy { order, ..all.clone() };
            let schedule = self.known.training(self.graph, &self.facts, &some);
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
