//! Training a network.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use plimsoll_plan::graph::Graph;
use plimsoll_plan::layers::Layer;
use plimsoll_plan::network::Network;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::StepKind;
use plimsoll_plan::shape::ValueType;

use crate::checkpoint::{self, Layout, Progress, Reader};
use crate::data::{Dataset, Loader};
use crate::device::{Arguments, Device, MemoryReport};
use crate::element::Element;
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
    /// The node of a batch normalization that sees one value per channel of each sample, if there is one: it can't be
    /// trained on a batch of one.
    one_value: Option<usize>,
    training: D::Prepared,
    evaluation: D::Prepared,
    /// The bytes that the plan says.
    planned: u64,
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
    /// A network that is not trained, a device without the memory that the plan needs, or that lacks a layer; a damaged plan.
    pub fn from_plan(plan: &Plan, device: D, seed: u64) -> Result<Self, Error> {
        Trainer::with_plan(plan, device, seed)
    }
}

impl<N: Network, D: Device> Trainer<N, D> {
    /// A trainer of the network `N`. `seed` decides the initial parameters and all random masks.
    ///
    /// # Errors
    /// A network that is not trained, a device without the memory that the plan needs, or that lacks a layer; a damaged plan.
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
        let options = training.options();
        if options.accumulate == 0 {
            return Err(Error::Argument {
                problem: format!("`{}` has `accumulate = 0`, with which no update would ever be made", graph.name),
                help: "accumulate over 1 batch or more".to_string(),
            });
        }
        let learning_rate = check_learning_rate(options.optimizer.lr())?;
        let evaluation = Program::evaluation(plan);
        for program in [&training, &evaluation] {
            program.check_sound()?;
            program.check_within(plan.peak_bytes())?;
        }
        let one_value = training.instructions.iter().find_map(|instruction| match instruction.kind {
            StepKind::Forward { node } => has_one_value(&graph, node).then_some(node),
            _ => None,
        });
        let training = device.prepare(training)?;
        let evaluation = device.prepare(evaluation)?;
        let session = Session::new(device, plan.peak_bytes(), training.as_ref(), seed)?;
        Ok(Trainer {
            session,
            graph,
            target,
            one_value,
            training,
            evaluation,
            planned: plan.peak_bytes(),
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
    /// Inputs or targets that do not fit the network; a batch without a target that counts, or of one sample where batch
    /// normalization needs more; a schedule's learning rate that is none. Nothing has changed then. A loss that is no
    /// finite number.
    pub fn step<'t>(&mut self, inputs: impl Inputs, targets: impl Into<Slice<'t>>) -> Result<f32, Error> {
        let targets = targets.into();
        let batch = self.session.upload_inputs(&self.training, &inputs)?;
        self.session.check_targets(&self.graph, &self.target, batch, targets)?;
        Session::<D>::check_counted(&self.graph, targets)?;
        if let (1, Some(node)) = (batch, self.one_value) {
            let node = &self.graph.nodes[node];
            let layer = if node.path.is_empty() { node.layer.rule().kind() } else { &node.path };
            return Err(Error::OneValue { layer: layer.to_string(), batch });
        }
        let Program { schedule, instructions, .. } = self.training.as_ref();
        let (target, loss) = (schedule.target.expect("training has targets"), schedule.loss.expect("and a loss"));
        let accumulate = self.training.as_ref().options().accumulate;
        let is_update = (self.batches + 1).is_multiple_of(accumulate);
        let steps = if is_update { instructions.len() } else { schedule.updates_from };
        if let Some(schedule) = &self.schedule {
            self.learning_rate = check_learning_rate(schedule.at(self.updates))?;
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
        for (inputs, targets) in batches {
            self.evaluate_batch(&mut metrics, &inputs, targets.into())?;
        }
        Ok(metrics)
    }

    /// Mean loss and accuracy over the next epoch of a loader, as in inference.
    ///
    /// # Errors
    /// Samples that can't be read or do not fit the network.
    pub fn evaluate_loader<S>(&mut self, loader: &mut Loader<S>) -> Result<Metrics, Error>
    where
        S: Dataset<Element: Element, Target: Element>,
    {
        let mut metrics = Metrics::default();
        for batch in loader.epoch() {
            let batch = batch?;
            self.evaluate_batch(&mut metrics, &batch.inputs(), batch.targets().into())?;
        }
        Ok(metrics)
    }

    fn evaluate_batch(&mut self, metrics: &mut Metrics, inputs: &impl Inputs, targets: Slice<'_>) -> Result<(), Error> {
        let elements = self.graph.value_type(self.graph.output).elements() as usize;
        let batch = self.session.predict(&mut self.evaluation, inputs)?.len() / elements;
        self.session.check_targets(&self.graph, &self.target, batch, targets)?;
        let loss = &self.training.as_ref().options().loss;
        metrics.add(&self.graph, loss, batch, self.session.output(), targets);
        Ok(())
    }

    /// Saves weights and running statistics as a safetensors file that is PyTorch's `state_dict` of the same network.
    ///
    /// # Errors
    /// A file that can't be written. What was there before is then still there.
    pub fn save_weights(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let layout = Layout::new(self.training.as_ref());
        checkpoint::write(path.as_ref(), &mut self.session, &layout, self.batches, None)
    }

    /// Saves all that training needs to go on as if it had never stopped: what [`save_weights`](Trainer::save_weights)
    /// saves, and beside it in the same file the optimizer's state, gradients that wait for more batches, and the counts
    /// and the seed that random masks and schedules of the learning rate follow.
    ///
    /// # Errors
    /// A file that can't be written. What was there before is then still there.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let layout = Layout::new(self.training.as_ref());
        let options = self.training.as_ref().options();
        let progress = Progress {
            batches: self.batches,
            updates: self.updates,
            seed: self.seed,
            learning_rate: self.learning_rate,
            accumulate: options.accumulate,
            optimizer: options.optimizer.name().to_string(),
        };
        checkpoint::write(path.as_ref(), &mut self.session, &layout, self.batches, Some(&progress))
    }

    /// Loads weights and running statistics from a safetensors file, whether a trainer or PyTorch saved it. The optimizer's
    /// state and all counts stay as they are.
    ///
    /// # Errors
    /// A file that is missing, damaged, or of another network; the error lists every tensor that does not fit.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let layout = Layout::new(self.training.as_ref());
        let mut reader = Reader::open(path.as_ref())?;
        reader.compare(&layout, None)?;
        reader.read(&mut self.session, &layout, None)
    }

    /// Goes on from what [`save`](Trainer::save) saved: the steps from here on are those, bit by bit, that would have
    /// followed. A schedule of the learning rate is code and is not in the file; the one that is [set](Trainer::set_schedule),
    /// before or after this, goes on from where it was. The order of a loader's samples is the
    /// [loader's](crate::data::Loader::set_epoch).
    ///
    /// # Errors
    /// A file that is missing, damaged, of another network or of another optimizer, or that holds weights alone; the error
    /// lists every tensor that does not fit.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let layout = Layout::new(self.training.as_ref());
        let mut reader = Reader::open(path.as_ref())?;
        let progress = reader.progress()?;
        let options = self.training.as_ref().options();
        for (what, saved, declared) in [
            ("optimizer", &progress.optimizer, options.optimizer.name()),
            ("accumulate", &progress.accumulate.to_string(), &options.accumulate.to_string()),
        ] {
            if saved != declared {
                let problem =
                    format!("it was saved with `{what} = {saved}`, but the network has `{what} = {declared}`");
                return Err(reader.no_resume(problem).into());
            }
        }
        reader.compare(&layout, Some(&progress))?;
        reader.read(&mut self.session, &layout, Some(&progress))?;
        if !progress.is_between_updates() {
            self.session.clear(&layout.gradients)?;
        }
        self.batches = progress.batches;
        self.updates = progress.updates;
        self.seed = progress.seed;
        self.learning_rate = progress.learning_rate;
        Ok(())
    }

    /// What the trainer has allocated on its device: exactly the plan's peak.
    pub fn allocated_bytes(&self) -> u64 {
        self.session.allocated_bytes()
    }

    /// What was planned, what was allocated, and what the device's driver says of it.
    pub fn memory_report(&self) -> MemoryReport {
        self.session.memory_report(self.planned)
    }

    /// The network as the planner knows it.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The device.
    pub fn device_mut(&mut self) -> &mut D {
        self.session.device_mut()
    }

    /// How many batches were trained on.
    pub fn batches(&self) -> u64 {
        self.batches
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
    ///
    /// # Errors
    /// A rate that is negative, infinite or no number. The rate stays as it was then.
    pub fn set_learning_rate(&mut self, learning_rate: f64) -> Result<(), Error> {
        self.learning_rate = check_learning_rate(learning_rate)?;
        self.schedule = None;
        Ok(())
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

/// A learning rate with which training makes sense. Zero is one: it lets everything stay but running statistics.
fn check_learning_rate(learning_rate: f64) -> Result<f64, Error> {
    if learning_rate.is_finite() && learning_rate >= 0.0 {
        return Ok(learning_rate);
    }
    Err(Error::Argument {
        problem: format!("the learning rate is {learning_rate}"),
        help: "give a number that is 0 or more, and finite".to_string(),
    })
}

/// Whether a node normalizes over the batch alone, for want of other axes than the channels.
fn has_one_value(graph: &Graph, node: usize) -> bool {
    let shape = &graph.value_type(graph.value_of(node)).shape.0;
    matches!(graph.nodes[node].layer, Layer::BatchNorm(_)) && shape[1..].iter().all(|extent| *extent == 1)
}
