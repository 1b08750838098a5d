//! Training a network.

use std::marker::PhantomData;
use std::sync::Arc;

use plimsoll_plan::graph::Graph;
use plimsoll_plan::network::Network;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::shape::ValueType;

use crate::device::{Arguments, Device};
use crate::error::Error;
use crate::inputs::{Inputs, Slice};
use crate::learning_rate::LearningRate;
use crate::metrics::Metrics;
use crate::program::Program;
use crate::session::Session;

/// A network in training on a device, in one arena of exactly the planned bytes.
pub struct Trainer<N, D: Device> {
    session: Session<D>,
    graph: Arc<Graph>,
    /// The type of the targets.
    target: ValueType,
    training: D::Prepared,
    evaluation: D::Prepared,
    seed: u64,
    /// Batches trained on.
    batches: u64,
    /// Updates made.
    updates: u64,
    learning_rate: f64,
    schedule: Option<Box<dyn LearningRate + Send>>,
    network: PhantomData<fn() -> N>,
}

impl<D: Device> Trainer<(), D> {
    /// A trainer for a plan that was made while the program runs. `seed` decides the initial parameters and all random
    /// masks.
    ///
    /// # Errors
    /// A network that is not trained, a device without the memory that the plan needs, or that lacks a layer.
    pub fn from_plan(plan: &Plan, device: D, seed: u64) -> Result<Self, Error> {
        Trainer::with_plan(plan, device, seed)
    }
}

impl<N: Network, D: Device> Trainer<N, D> {
    /// A trainer of the network `N`. `seed` decides the initial parameters and all random masks.
    ///
    /// # Errors
    /// A network that is not trained, a device without the memory that the plan needs, or that lacks a layer.
    pub fn new(device: D, seed: u64) -> Result<Self, Error> {
        Trainer::with_plan(&N::PLAN, device, seed)
    }
}

impl<N, D: Device> Trainer<N, D> {
    fn with_plan(plan: &Plan, mut device: D, seed: u64) -> Result<Self, Error> {
        let Some(training) = Program::training(plan) else {
            return Err(Error::NotTrained { network: plan.graph.name.clone() });
        };
        let graph = Arc::clone(&training.graph);
        let target = graph.target_type().expect("a network that is trained has targets");
        let learning_rate = training.options().optimizer.lr();
        let training = device.prepare(training)?;
        let evaluation = device.prepare(Program::evaluation(plan))?;
        let session = Session::new(device, plan.peak_bytes(), training.as_ref(), seed)?;
        Ok(Trainer {
            session,
            graph,
            target,
            training,
            evaluation,
            seed,
            batches: 0,
            updates: 0,
            learning_rate,
            schedule: None,
            network: PhantomData,
        })
    }

    /// One step of training on a batch, which may be smaller than planned; the loss before the step. The inputs are a
    /// slice, or a tuple of slices in declared order. With `accumulate = n`, the parameters change at every n-th call.
    ///
    /// # Errors
    /// Inputs or targets that do not fit the network, or a loss that is no finite number.
    pub fn step<'t>(&mut self, inputs: impl Inputs, targets: impl Into<Slice<'t>>) -> Result<f32, Error> {
        let targets = targets.into();
        let batch = self.session.upload_inputs(&self.training, &inputs)?;
        self.session.check_targets(&self.graph, &self.target, batch, targets)?;
        let Program { schedule, instructions, .. } = self.training.as_ref();
        let (target, loss) = (schedule.target.expect("training has targets"), schedule.loss.expect("and a loss"));
        let accumulate = self.training.as_ref().options().accumulate;
        let is_update = (self.batches + 1).is_multiple_of(accumulate);
        let steps = if is_update { instructions.len() } else { schedule.updates_from };
        if let Some(schedule) = &self.schedule {
            self.learning_rate = schedule.at(self.updates);
        }
        let arguments = Arguments {
            batch,
            pass: self.batches,
            update: self.updates + 1,
            learning_rate: self.learning_rate,
            seed: self.seed,
        };
        self.session.upload(&self.training, target, targets.bytes())?;
        self.session.run(&mut self.training, 0..steps, &arguments)?;
        self.batches += 1;
        self.updates += u64::from(is_update);
        let loss = self.session.scalar(&self.training, loss)?;
        if loss.is_finite() { Ok(loss) } else { Err(Error::Loss { step: self.batches, loss }) }
    }

    /// The network's outputs for a batch, sample after sample, as in inference. The slice lasts until the next call.
    ///
    /// # Errors
    /// Inputs that do not fit the network.
    pub fn predict(&mut self, inputs: impl Inputs) -> Result<&[f32], Error> {
        self.session.predict(&mut self.evaluation, &inputs)
    }

    /// Mean loss and accuracy over batches of inputs and targets, as in inference.
    ///
    /// # Errors
    /// Inputs or targets that do not fit the network.
    pub fn evaluate<'t, I: Inputs, T: Into<Slice<'t>>>(
        &mut self,
        batches: impl IntoIterator<Item = (I, T)>,
    ) -> Result<Metrics, Error> {
        let mut metrics = Metrics::default();
        let graph = Arc::clone(&self.graph);
        let loss = &graph.training.as_ref().expect("a trainer's network is trained").loss;
        let elements = graph.value_type(graph.output).elements() as usize;
        for (inputs, targets) in batches {
            let targets = targets.into();
            let batch = self.session.predict(&mut self.evaluation, &inputs)?.len() / elements;
            self.session.check_targets(&graph, &self.target, batch, targets)?;
            metrics.add(&graph, loss, batch, self.session.output(), targets);
        }
        Ok(metrics)
    }

    /// What the trainer has allocated on its device: exactly the plan's peak.
    pub fn allocated_bytes(&self) -> u64 {
        self.session.allocated_bytes()
    }

    /// The network as the planner knows it.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The device.
    pub fn device_mut(&mut self) -> &mut D {
        self.session.device_mut()
    }

    /// How many updates of the parameters were made.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The learning rate of the last update, or what it was set to since.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// Sets the learning rate from now on, in place of that of the optimizer's declaration or of a schedule.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.schedule = None;
        self.learning_rate = learning_rate;
    }

    /// Lets the learning rate follow a schedule.
    pub fn set_schedule(&mut self, schedule: impl LearningRate + Send + 'static) {
        self.schedule = Some(Box::new(schedule));
    }

    /// The values of a parameter or buffer, by PyTorch's name: `layer1.0.conv1.weight`.
    ///
    /// # Errors
    /// A name that no parameter has.
    pub fn parameter(&mut self, name: &str) -> Result<Vec<f32>, Error> {
        self.session.parameter(&self.graph, name)
    }

    /// Sets the values of a parameter or buffer.
    ///
    /// # Errors
    /// A name that no parameter has, or another number of values.
    pub fn load_parameter(&mut self, name: &str, values: &[f32]) -> Result<(), Error> {
        self.session.load_parameter(&self.graph, name, values)
    }
}
