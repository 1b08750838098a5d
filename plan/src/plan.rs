//! The plan: schedules of training and inference, placed in one arena.

use serde::{Deserialize, Serialize};

use crate::arena::Effort;
use crate::consistency;
use crate::graph::{Graph, MAX_BATCH};
use crate::lower;
use crate::placement::{Placement, PlanError};
use crate::schedule::Schedule;
use crate::validate::validate;

/// A schedule with its place in the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The steps and buffers.
    pub schedule: Schedule,
    /// The offsets.
    pub placement: Placement,
}

impl Planned {
    /// Places a schedule at a batch.
    ///
    /// # Errors
    /// A batch out of range, or sizes that pass 64 bits.
    pub fn new(schedule: Schedule, batch: u64, name: &str) -> Result<Planned, PlanError> {
        if !(1..=MAX_BATCH).contains(&batch) {
            return Err(PlanError::Batch { batch });
        }
        match Placement::new(&schedule, batch, &Effort::EXPANSION) {
            Some(placement) => Ok(Planned { schedule, placement }),
            None => Err(PlanError::TooLarge { name: name.to_string(), batch }),
        }
    }
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
    training: Option<Offsets>,
    inference: Offsets,
}

/// A placement's transient part.
#[derive(Serialize, Deserialize)]
struct Offsets {
    length: u64,
    transient: Vec<u64>,
}

impl Plan {
    /// Plans a network.
    ///
    /// # Errors
    /// A network whose parts do not fit together, a batch out of range, or sizes that pass 64 bits.
    pub fn new(graph: Graph) -> Result<Plan, PlanError> {
        consistency::check(&graph)?;
        let inference = Planned::new(lower::inference(&graph), graph.inference_batch(), &graph.name)?;
        let training = match &graph.training {
            Some(training) => Some(Planned::new(lower::training(&graph), training.batch, &graph.name)?),
            None => None,
        };
        let plan = Plan { graph, training, inference };
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
        let offsets = |planned: &Planned| {
            let Placement { persistent_bytes, length, offsets, .. } = &planned.placement;
            let transient = &offsets[planned.schedule.persistent..];
            Offsets { length: *length, transient: transient.iter().map(|offset| offset - persistent_bytes).collect() }
        };
        let embedded = Embedded {
            graph: self.graph.clone(),
            training: self.training.as_ref().map(offsets),
            inference: offsets(&self.inference),
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
        let restore = |schedule: Schedule, batch, offsets: Offsets| match Placement::restore(
            &schedule,
            batch,
            &offsets.transient,
            offsets.length,
        ) {
            Some(placement) => Ok(Planned { schedule, placement }),
            None => Err(PlanError::Unreadable("its offsets belong to other steps".to_string())),
        };
        let inference = restore(lower::inference(&graph), graph.inference_batch(), inference)?;
        let training = match training.zip(graph.training.as_ref()) {
            Some((offsets, training)) => Some(restore(lower::training(&graph), training.batch, offsets)?),
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
