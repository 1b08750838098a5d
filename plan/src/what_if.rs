//! What would fit: the largest batch within a budget, and other remedies, each found by planning it.

use crate::graph::{Graph, MAX_BATCH};
use crate::known::Known;
use crate::optimizers::Optimizer;
use crate::placement::Live;
use crate::plan::Plan;
use crate::schedule::Schedule;

/// The bytes of a budget that are left for the arena.
pub fn arena_budget(budget: u64, reserve: u64) -> u64 {
    budget.saturating_sub(reserve)
}

/// The largest batch whose arena stays within `limit` bytes: the batch of training (together with inference, unless that
/// has a batch of its own), or of inference for a network that is not trained. Zero where not even one sample fits.
pub fn largest_batch(plan: &Plan, limit: u64) -> u64 {
    largest_batch_with(plan, limit, &Known::default())
}

/// The same, with what is known since the plan was made.
pub(crate) fn largest_batch_with(plan: &Plan, limit: u64, known: &Known) -> u64 {
    let graph = &plan.graph;
    // What the steps need at other batches is told by those that need the least, if these may be taken.
    let least = graph.budget.recompute.then(|| Plan::new_with(graph.clone().budget(0), known).ok()).flatten();
    let mut low = Question { plan: least.as_ref().unwrap_or(plan), limit }.largest();
    // Another batch may be run by another strategy, and not every placement reaches the lower bound: planning tells.
    let fits = |batch: u64| {
        let mut graph = graph.clone().batch(batch);
        if graph.budget.recompute {
            graph.budget.train = Some(limit);
            graph.budget.reserve = 0;
        }
        Plan::within(graph, limit, known)
    };
    // Where that fails, down in ever larger steps, and from what fits up again.
    let (mut found, mut step) = (None, (low / 64).max(1));
    while low > 0 && found.is_none() {
        found = fits(low);
        if found.is_none() {
            low = low.saturating_sub(step);
            step *= 2;
        }
    }
    while low < MAX_BATCH {
        let further = found.as_ref().map_or(0, |plan| Question { plan, limit }.largest());
        let mut further = [further, low + 1].into_iter().filter(|next| *next > low);
        let next = further.find_map(|next| Some((next, fits(next)?)));
        match next {
            Some((next, plan)) => (low, found) = (next, Some(plan)),
            None => break,
        }
    }
    low
}

struct Question<'p> {
    plan: &'p Plan,
    limit: u64,
}

impl Question<'_> {
    /// The largest batch that the plan's own steps allow, as far as the lower bound tells.
    fn largest(&self) -> u64 {
        let mut low = 0; // fits
        let mut high = MAX_BATCH + 1; // does not
        // The bytes are nearly proportional to the batch, so a line through two batches points close to the answer: none
        // at all, and the one nearest below (or the declared one).
        let base = self.lower_bound(0).unwrap_or(0);
        let mut guess = self.plan.graph.declared_batch();
        let mut nearest = None;
        while high - low > 1 {
            let bytes = self.lower_bound(guess);
            let fits = bytes.is_some_and(|bytes| bytes <= self.limit);
            if fits || nearest.is_none() {
                nearest = bytes.map(|bytes| (guess, bytes.saturating_sub(base)));
            }
            match fits {
                true => low = guess,
                false => high = guess,
            }
            guess = match nearest.zip(self.limit.checked_sub(base)) {
                Some(((batch, bytes), room)) => between(low, high, room / (bytes / batch.max(1)).max(1)),
                None => low + (high - low) / 2,
            };
        }
        low
    }

    fn schedules(&self) -> (Option<&Schedule>, &Schedule) {
        (self.plan.training.as_ref().map(|t| &t.schedule), &self.plan.inference.schedule)
    }

    /// The batch of inference when that of training is `batch`.
    fn inference_batch(&self, batch: u64) -> u64 {
        let graph = &self.plan.graph;
        if graph.training.is_some() { graph.inference_batch.unwrap_or(batch) } else { batch }
    }

    /// The most bytes live at one step.
    fn lower_bound(&self, batch: u64) -> Option<u64> {
        let (training, inference) = self.schedules();
        let shift = self.plan.evaluation_shift();
        let evaluation = Live::at(inference, self.inference_batch(batch))?.0.most.checked_add(shift)?;
        match training {
            Some(training) => Some(Live::at(training, batch)?.0.most.max(evaluation)),
            None => Some(evaluation),
        }
    }
}

/// A guess, strictly between two others: where it falls on one side of them, that side is closed in on.
fn between(low: u64, high: u64, guess: u64) -> u64 {
    if guess <= low {
        (low + 1).max(low + (high - low) / 1024)
    } else if guess >= high {
        (high - 1).min(high - (high - low) / 1024)
    } else {
        guess
    }
}

/// Optimizers that keep less than the declared one, the least change first, each as it is written in `#[train]`.
pub fn lighter_optimizers(graph: &Graph) -> Vec<(&'static str, Optimizer)> {
    let states = graph.training.as_ref().map_or(0, |training| training.optimizer.state().len());
    let momentum = Optimizer::Sgd { lr: 1e-3, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let candidates = [
        ("lion", Optimizer::by_name("lion")),
        ("sgd(momentum = 0.9)", Some(momentum)),
        ("sgd", Optimizer::by_name("sgd")),
    ];
    let known = candidates.into_iter().filter_map(|(text, optimizer)| Some((text, optimizer?)));
    known.filter(|(_, optimizer)| optimizer.state().len() < states).collect()
}
