//! How a step is run in less memory: which values are computed again instead of kept, and which gradients never exist as a
//! whole.
//!
//! A [`Strategy`] is all that the planner decides before buffers are made; the same strategy always lowers to the same steps.
//! Each way to save memory is a [`Saving`] with a file of its own here, and can be switched off by `#[without(..)]`.

pub mod cheap;
pub mod row_tiles;
pub mod saving;

use serde::{Deserialize, Serialize};

use crate::graph::Graph;
use crate::lower::{self, Facts};
use crate::optimizers::Optimizer;
use crate::order::{self, Action};
use crate::placement::Live;
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
    pub fn plain(graph: &Graph, facts: &Facts) -> Strategy {
        Strategy { order: order::plain(graph, facts), momentum_gradients: false, row_tiles: Vec::new() }
    }

    /// A pass of inference.
    pub fn inference(graph: &Graph, facts: &Facts) -> Strategy {
        Strategy { order: order::forward(graph, facts), momentum_gradients: false, row_tiles: Vec::new() }
    }

    /// Training steps with every saving that is not switched off, the best first. The first drops no more values than the
    /// peak asks for. Those after it are tried where that one can't be placed as low as it could be.
    pub fn training(graph: &Graph, facts: &Facts) -> Vec<Strategy> {
        let plain = Strategy {
            momentum_gradients: gradients_suit_momentum(graph) && graph.uses(Saving::MomentumGradients),
            ..Strategy::plain(graph, facts)
        };
        let row_tiles = if graph.uses(Saving::RowTiles) && !plain.momentum_gradients {
            row_tiles::candidates(graph, facts)
        } else {
            Vec::new()
        };
        let dropped = if graph.uses(Saving::CheapRecomputation) {
            cheap::candidates(graph, facts, cheap::limit(graph, facts))
        } else {
            Vec::new()
        };
        if dropped.is_empty() && row_tiles.is_empty() {
            return vec![plain];
        }
        let order = cheap::order(graph, facts, &dropped);
        let all = Strategy { order, row_tiles, ..plain.clone() };
        let batch = graph.declared_batch();
        let lower = |strategy: &Strategy| lower::training(graph, facts, strategy);
        let schedule = lower(&all);
        // Sizes that pass 64 bits are reported when the plan is placed.
        let Some((live, _)) = Live::at(&schedule, batch) else { return vec![plain] };
        let most = |strategy: &Strategy| Live::at(&lower(strategy), batch).map_or(u64::MAX, |(live, _)| live.most);
        if most(&plain) <= live.most {
            return vec![plain, all];
        }
        // Values kept right up to the peak are harder to place than with a little room to spare.
        let mut strategies: Vec<Strategy> = Vec::new();
        for margin in [0, live.most / 64, live.most / 16] {
            let needed = cheap::needed(graph, &dropped, &schedule, &live, margin);
            let some = Strategy { order: cheap::order(graph, facts, &needed), ..all.clone() };
            if needed != dropped && !strategies.contains(&some) && most(&some) <= live.most {
                strategies.push(some);
            }
        }
        strategies.push(all);
        strategies
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
