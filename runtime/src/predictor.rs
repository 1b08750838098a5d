//! Predicting with a network, in the memory of inference alone.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use plimsoll_plan::graph::Graph;
use plimsoll_plan::network::Network;
use plimsoll_plan::plan::Plan;

use crate::checkpoint::{Layout, Reader};
use crate::device::{Device, MemoryReport};
use crate::error::Error;
use crate::inputs::Inputs;
use crate::program::Program;
use crate::session::Session;

/// A network for inference on a device, in one arena of exactly the planned bytes.
pub struct Predictor<N, D: Device> {
    session: Session<D>,
    graph: Arc<Graph>,
    program: D::Prepared,
    /// The bytes that the plan says.
    planned: u64,
    network: PhantomData<fn() -> N>,
}

impl<D: Device> Predictor<(), D> {
    /// A predictor for a plan that was made while the program runs. Its parameters have the initial values that `seed`
    /// decides, until others are loaded.
    ///
    /// # Errors
    /// A device without the memory that the plan needs, or that lacks a layer; a damaged plan.
    pub fn from_plan(plan: &Plan, device: D, seed: u64) -> Result<Self, Error> {
        Predictor::with_plan(plan, device, seed)
    }
}

impl<N: Network, D: Device> Predictor<N, D> {
    /// A predictor with the network `N`. Its parameters have the initial values that `seed` decides, until others are
    /// loaded.
    ///
    /// # Errors
    /// A device without the memory that the plan needs, or that lacks a layer; a damaged plan.
    pub fn new(device: D, seed: u64) -> Result<Self, Error> {
        Predictor::with_plan(&N::PLAN, device, seed)
    }
}

impl<N, D: Device> Predictor<N, D> {
    fn with_plan(plan: &Plan, mut device: D, seed: u64) -> Result<Self, Error> {
        let program = Program::inference(plan);
        program.check_sound()?;
        program.check_within(plan.inference_bytes())?;
        let program = device.prepare(program)?;
        let graph = Arc::clone(&program.as_ref().graph);
        let session = Session::new(device, plan.inference_bytes(), program.as_ref(), seed)?;
        Ok(Predictor { session, graph, program, planned: plan.inference_bytes(), network: PhantomData })
    }

    /// The network's outputs for a batch, sample after sample. The slice lasts until the next call.
    ///
    /// # Errors
    /// Inputs that do not fit the network.
    pub fn predict(&mut self, inputs: impl Inputs) -> Result<&[f32], Error> {
        self.session.predict(&mut self.program, &inputs)
    }

    /// Loads weights and running statistics from a safetensors file, whether a trainer or PyTorch saved it.
    ///
    /// # Errors
    /// A file that is missing, damaged, or of another network; the error lists every tensor that does not fit.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let layout = Layout::new(self.program.as_ref());
        let mut reader = Reader::open(path.as_ref())?;
        reader.compare(&layout, None)?;
        reader.read(&mut self.session, &layout, None)
    }

    /// What the predictor has allocated on its device: exactly the plan's bytes of inference.
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
