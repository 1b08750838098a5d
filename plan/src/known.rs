//! What is known of a network from plans that were made before.

use std::cell::RefCell;
use std::rc::Rc;

use crate::chain::{Effort, Stage, Tradeoff};
use crate::graph::Graph;
use crate::lower::{self, Facts};
use crate::schedule::Schedule;
use crate::strategy::Strategy;

/// What one network's plans share, whatever their batch and budget: see [`Plan::new_with`](crate::plan::Plan::new_with).
#[derive(Default)]
pub struct Known {
    /// The same strategy lowers to the same steps at every batch.
    schedules: RefCell<Vec<(Strategy, Rc<Schedule>)>>,
    chains: RefCell<Vec<Chain>>,
}

/// A chain, and what recomputation in it costs up to so many bytes.
struct Chain {
    stages: Vec<Stage>,
    memory: u64,
    tradeoff: Rc<Tradeoff>,
}

impl Known {
    /// The schedule of a training step, lowered unless it is known.
    pub fn training(&self, graph: &Graph, facts: &Facts, strategy: &Strategy) -> Rc<Schedule> {
        self.schedule(strategy, || lower::training(graph, facts, strategy))
    }

    /// The schedule of a pass of inference, lowered unless it is known.
    pub fn inference(&self, graph: &Graph, facts: &Facts, strategy: &Strategy) -> Rc<Schedule> {
        self.schedule(strategy, || lower::inference(graph, facts, strategy))
    }

    /// An order has the loss in it or not, so that no strategy is one for both.
    fn schedule(&self, strategy: &Strategy, lower: impl FnOnce() -> Schedule) -> Rc<Schedule> {
        let mut schedules = self.schedules.borrow_mut();
        if let Some((_, schedule)) = schedules.iter().find(|(other, _)| other == strategy) {
            return schedule.clone();
        }
        let schedule = Rc::new(lower());
        schedules.push((strategy.clone(), schedule.clone()));
        schedule
    }

    /// What recomputation in a chain costs, solved unless it is known. `None` where its sizes or costs are too large.
    pub fn tradeoff(&self, stages: Vec<Stage>, memory: u64) -> Option<Rc<Tradeoff>> {
        let mut chains = self.chains.borrow_mut();
        if let Some(chain) = chains.iter().find(|chain| chain.memory == memory && chain.stages == stages) {
            return Some(chain.tradeoff.clone());
        }
        let tradeoff = Rc::new(Tradeoff::new(&stages, memory, Effort::EXPANSION).ok()?);
        chains.push(Chain { stages, memory, tradeoff: tradeoff.clone() });
        Some(tradeoff)
    }
}
