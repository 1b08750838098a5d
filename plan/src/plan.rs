//! The plan: schedules of training and inference, placed in one arena.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::arena::Effort;
use crate::consistency;
use crate::graph::{Graph, MAX_BATCH, Training};
use crate::known::Known;
use crate::lower::{self, Facts};
use crate::placement::{Live, Placement, PlanError};
use crate::schedule::Schedule;
use crate::strategy::{Strategies, Strategy, in_best_sequence, recompute};
use crate::validate::validate;
use crate::what_if::arena_budget;

/// A schedule with its place in the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The decisions that led to the schedule.
    pub strategy: Strategy,
    /// The steps and buffers.
    pub schedule: Schedule,
    /// The offsets.
    pub placement: Placement,
}

impl Planned {
    /// Plans the training step. With a `goal`, an arena of no more bytes is low enough, and there may be no plan where it
    /// is not reached.
    ///
    /// # Errors
    /// A batch out of range, or sizes that pass 64 bits.
    fn training(
        graph: &Graph,
        training: &Training,
        inference: &Planned,
        goal: Option<u64>,
        known: &Known,
    ) -> Result<Option<Planned>, PlanError> {
        check_batch(training.batch)?;
        let strategies = Strategies::new(graph, known, inference.placement.transient_bytes());
        match graph.budget.train.filter(|_| graph.budget.recompute) {
            Some(budget) => {
                let limit = arena_budget(budget, graph.budget.reserve);
                Planned::recomputing(graph, strategies, limit, goal, known)
            }
            None => Planned::lowest(graph, strategies, goal).map(Some),
        }
    }

    /// The step in that of several ways which is placed lowest, or low enough for the goal.
    fn lowest(
        graph: &Graph,
        ways: impl Iterator<Item = (Strategy, Rc<Schedule>)>,
        goal: Option<u64>,
    ) -> Result<Planned, PlanError> {
        let batch = graph.declared_batch();
        let greedy = Effort { enough: goal.unwrap_or(0), ..Effort::GREEDY };
        let is_low_enough =
            |placement: &Placement| placement.is_exact() || goal.is_some_and(|goal| placement.length <= goal);
        let mut best: Option<(Strategy, Rc<Schedule>, Placement)> = None;
        for (strategy, schedule) in ways {
            let placement = place(&schedule, batch, &greedy, &graph.name)?;
            if best.as_ref().is_none_or(|(.., best)| placement.length < best.length) {
                best = Some((strategy, schedule, placement));
            }
            if best.as_ref().is_some_and(|(.., best)| is_low_enough(best)) {
                break;
            }
        }
        let (strategy, schedule, mut placement) = best.expect("there is a strategy for every network");
        if !is_low_enough(&placement) {
            placement = place(&schedule, batch, &Effort::EXPANSION, &graph.name)?;
        }
        Ok(Planned { strategy, schedule: Rc::unwrap_or_clone(schedule), placement })
    }

    /// The step with activations computed again until the arena stays within a limit; where nothing does, in the least memory,
    /// unless there is a goal.
    fn recomputing(
        graph: &Graph,
        strategies: Strategies,
        limit: u64,
        goal: Option<u64>,
        known: &Known,
    ) -> Result<Option<Planned>, PlanError> {
        /// A placement above its lower bound asks for a little less.
        const ATTEMPTS: usize = 4;
        let batch = graph.declared_batch();
        let too_large = || PlanError::TooLarge { name: graph.name.clone(), batch };
        let facts = strategies.facts.clone();
        let mut ways = strategies.peekable();
        let (mut base, schedule) = ways.peek().cloned().expect("there is a strategy for every network");
        let (Live { mut most, persistent, .. }, _) = Live::at(&schedule, batch).ok_or_else(too_large)?;
        let mut kept = None;
        // No placement is needed to know that more than the limit is live.
        if most <= limit {
            let planned = Planned::lowest(graph, &mut ways, goal)?;
            if planned.placement.length <= limit {
                return Ok(Some(planned));
            }
            (base, most) = (planned.strategy.clone(), planned.placement.lower_bound);
            kept = Some(planned);
        }
        let search = recompute::Search::new(graph, &facts, known, base, most);
        let plan = |way: recompute::Candidate| {
            let schedule = known.training(graph, &facts, &way.strategy);
            let placement = place(&schedule, batch, &Effort::EXPANSION, &graph.name)?;
            Ok(Planned { strategy: way.strategy, schedule: Rc::unwrap_or_clone(schedule), placement })
        };
        let mut live = limit;
        let mut segments: Option<(u64, Planned)> = None;
        // What persists can't be computed again.
        let attempts = if limit > persistent { ATTEMPTS } else { 0 };
        for _ in 0..attempts {
            let Some(way) =
                search.within(live).filter(|way| segments.as_ref().is_none_or(|(cost, _)| way.cost < *cost))
            else {
                break;
            };
            let planned: Planned = plan(way)?;
            if planned.placement.length <= limit {
                return Ok(Some(planned));
            }
            if live == limit {
                // Less live bytes may cost more than segments that can be placed.
                for way in search.segments_within(limit) {
                    let (cost, planned) = (way.cost, plan(way)?);
                    if planned.placement.length <= limit {
                        segments = Some((cost, planned));
                        break;
                    }
                }
            }
            live -= (planned.placement.length - limit).min(live);
        }
        if let Some((_, planned)) = segments {
            return Ok(Some(planned));
        }
        if goal.is_some() {
            return Ok(None);
        }
        let kept = kept.map_or_else(|| Planned::lowest(graph, ways, None), Ok)?;
        match search.least().filter(|way| way.most < kept.placement.length) {
            Some(way) => {
                let least: Planned = plan(way)?;
                Ok(Some(if least.placement.length < kept.placement.length { least } else { kept }))
            }
            None => Ok(Some(kept)),
        }
    }

    /// Plans the training step by a strategy of one's own.
    ///
    /// # Errors
    /// A strategy that is none for the network, a batch out of range, or sizes that pass 64 bits.
    fn training_by(graph: &Graph, training: &Training, strategy: Strategy) -> Result<Planned, PlanError> {
        check_batch(training.batch)?;
        let facts = strategy.facts(graph, true);
        strategy.check(graph, &facts, true).map_err(PlanError::Inconsistent)?;
        let schedule = lower::training(graph, &facts, &strategy);
        let placement = place(&schedule, training.batch, &Effort::EXPANSION, &graph.name)?;
        Ok(Planned { strategy, schedule, placement })
    }

    /// Plans a pass of inference.
    ///
    /// # Errors
    /// A batch out of range, or sizes that pass 64 bits.
    fn inference(graph: &Graph, known: &Known) -> Result<Planned, PlanError> {
        let batch = graph.inference_batch();
        check_batch(batch)?;
        let of = |facts: Facts| {
            let strategy = Strategy::inference(&facts);
            let schedule = known.inference(graph, &facts, &strategy);
            (strategy, schedule)
        };
        let most = |(_, schedule): &(Strategy, Rc<Schedule>)| {
            Live::at(schedule, batch).map_or(u64::MAX, |(live, _)| live.most)
        };
        let (strategy, schedule) = in_best_sequence(graph, Facts::new(graph, false), of, most);
        let placement = place(&schedule, batch, &Effort::EXPANSION, &graph.name)?;
        Ok(Planned { strategy, schedule: Rc::unwrap_or_clone(schedule), placement })
    }

    /// What one training step computes, over what it would compute without doing anything twice, with bytes that are moved
    /// counted as so many operations.
    pub fn compute(&self, graph: &Graph) -> f64 {
        let facts = self.strategy.facts(graph, true);
        1.0 + recompute::again(&facts, &self.strategy.order) as f64 / facts.step_cost().max(1) as f64
    }

    /// Takes up what was planned before: the same strategy lowers to the same steps.
    fn restore(graph: &Graph, training: bool, batch: u64, embedded: EmbeddedPart) -> Result<Planned, PlanError> {
        let EmbeddedPart { strategy, length, transient } = embedded;
        let facts = strategy.facts(graph, training);
        strategy.check(graph, &facts, training).map_err(PlanError::Unreadable)?;
        let lower = if training { lower::training } else { lower::inference };
        let schedule = lower(graph, &facts, &strategy);
        match Placement::restore(&schedule, batch, &transient, length) {
            Some(placement) => Ok(Planned { strategy, schedule, placement }),
            None => Err(PlanError::Unreadable("its offsets belong to other steps".to_string())),
        }
    }
}

/// Places a schedule at a batch.
fn place(schedule: &Schedule, batch: u64, effort: &Effort, name: &str) -> Result<Placement, PlanError> {
    Placement::new(schedule, batch, effort).ok_or_else(|| PlanError::TooLarge { name: name.to_string(), batch })
}

fn check_batch(batch: u64) -> Result<(), PlanError> {
    if (1..=MAX_BATCH).contains(&batch) { Ok(()) } else { Err(PlanError::Batch { batch }) }
}

/// All that is known of a network's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The network.
    pub graph: Graph,
    /// One training step, if the network is trained.
    pub training: Option<Planned>,
    /// One pass of inference, alone in its arena. A trainer that evaluates runs the same steps with the transient part
    /// moved up, above its own persistent one: see [`evaluation_shift`](Plan::evaluation_shift).
    pub inference: Planned,
}

/// What is kept of a plan in a compiled program: everything that can't be derived from the rest in linear time.
#[derive(Serialize, Deserialize)]
struct Embedded {
    graph: Graph,
    training: Option<EmbeddedPart>,
    inference: EmbeddedPart,
}

/// A strategy, and the transient part of its placement.
#[derive(Serialize, Deserialize)]
struct EmbeddedPart {
    strategy: Strategy,
    length: u64,
    transient: Vec<u64>,
}

impl Plan {
    /// Plans a network.
    ///
    /// # Errors
    /// A network whose parts do not fit together, a batch out of range, or sizes that pass 64 bits.
    pub fn new(graph: Graph) -> Result<Plan, PlanError> {
        Plan::new_with(graph, &Known::default())
    }

    /// Plans a network of which something is known already. It may differ in batch and budget from those that were planned
    /// with that before, and in nothing else.
    ///
    /// # Errors
    /// As [`new`](Plan::new).
    pub fn new_with(graph: Graph, known: &Known) -> Result<Plan, PlanError> {
        Ok(Plan::towards(graph, None, known)?.expect("without a goal there is a plan"))
    }

    /// A plan whose peak stays within so many bytes. It is not the lowest one, but there is one just if the lowest is within
    /// them.
    pub(crate) fn within(graph: Graph, goal: u64, known: &Known) -> Option<Plan> {
        Plan::towards(graph, Some(goal), known).ok()?.filter(|plan| plan.peak_bytes() <= goal)
    }

    fn towards(graph: Graph, goal: Option<u64>, known: &Known) -> Result<Option<Plan>, PlanError> {
        consistency::check(&graph)?;
        let inference = Planned::inference(&graph, known)?;
        let training = match &graph.training {
            Some(training) => match Planned::training(&graph, training, &inference, goal, known)? {
                None => return Ok(None),
                planned => planned,
            },
            None => None,
        };
        Plan::whole(Plan { graph, training, inference }).map(Some)
    }

    /// Plans a network whose training step follows a strategy of one's own.
    ///
    /// # Errors
    /// As [`new`](Plan::new), and a strategy that is none for the network.
    pub fn with_strategy(graph: Graph, strategy: Strategy) -> Result<Plan, PlanError> {
        consistency::check(&graph)?;
        let inference = Planned::inference(&graph, &Known::default())?;
        let by = |training| Planned::training_by(&graph, training, strategy);
        let training = graph.training.as_ref().map(by).transpose()?;
        Plan::whole(Plan { graph, training, inference })
    }

    fn whole(plan: Plan) -> Result<Plan, PlanError> {
        match plan.evaluation_length() {
            Some(_) => Ok(plan),
            None => Err(PlanError::TooLarge { batch: plan.graph.inference_batch(), name: plan.graph.name }),
        }
    }

    /// What a training run or, for a network that is not trained, inference allocates: the arena's length in bytes.
    pub fn peak_bytes(&self) -> u64 {
        match &self.training {
            Some(training) => training.placement.length.max(self.evaluation_length().expect("checked when planned")),
            None => self.inference.placement.length,
        }
    }

    /// The most bytes live at one step. No arena can be shorter.
    pub fn lower_bound_bytes(&self) -> u64 {
        let inference = self.inference.placement.lower_bound;
        match &self.training {
            Some(training) => training.placement.lower_bound.max(inference + self.evaluation_shift()),
            None => inference,
        }
    }

    /// What inference alone allocates, in bytes.
    pub fn inference_bytes(&self) -> u64 {
        self.inference.placement.length
    }

    /// How far up a trainer moves the transient part of inference, to clear the optimizer's state.
    pub fn evaluation_shift(&self) -> u64 {
        match &self.training {
            Some(training) => training.placement.persistent_bytes - self.inference.placement.persistent_bytes,
            None => 0,
        }
    }

    /// The arena that a trainer's evaluation needs.
    fn evaluation_length(&self) -> Option<u64> {
        self.inference.placement.length.checked_add(self.evaluation_shift())
    }

    /// The part that decides [`peak_bytes`](Plan::peak_bytes).
    pub fn peak_part(&self) -> &Planned {
        match &self.training {
            Some(training) if training.placement.length == self.peak_bytes() => training,
            _ => &self.inference,
        }
    }

    /// The bytes to carry in a program, for [`from_bytes`](Plan::from_bytes).
    pub fn to_bytes(&self) -> Vec<u8> {
        let part = |planned: &Planned| {
            let Placement { persistent_bytes, length, offsets, .. } = &planned.placement;
            let transient = &offsets[planned.schedule.persistent..];
            EmbeddedPart {
                strategy: planned.strategy.clone(),
                length: *length,
                transient: transient.iter().map(|offset| offset - persistent_bytes).collect(),
            }
        };
        let embedded = Embedded {
            graph: self.graph.clone(),
            training: self.training.as_ref().map(part),
            inference: part(&self.inference),
        };
        postcard::to_allocvec(&embedded).expect("a plan holds nothing that can't be written")
    }

    /// The plan that [`to_bytes`](Plan::to_bytes) wrote. Steps and lifespans follow from the network; offsets are taken
    /// as they were placed.
    ///
    /// # Errors
    /// Bytes that are no plan of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, PlanError> {
        let Embedded { graph, training, inference } =
            postcard::from_bytes(bytes).map_err(|error| PlanError::Unreadable(error.to_string()))?;
        consistency::check(&graph)?;
        let inference = Planned::restore(&graph, false, graph.inference_batch(), inference)?;
        let training = match training.zip(graph.training.as_ref()) {
            Some((part, training)) => Some(Planned::restore(&graph, true, training.batch, part)?),
            None => None,
        };
        let plan = Plan { graph, training, inference };
        match validate(&plan) {
            Ok(()) => Ok(plan),
            Err(fault) => Err(PlanError::Unreadable(fault.to_string())),
        }
    }
}

impl Graph {
    /// Plans the network: the answer to a "what if".
    ///
    /// # Errors
    /// A batch out of range, or sizes that pass 64 bits.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        Plan::new(self.clone())
    }
}
