//! A network in an arena: what trainers and predictors share.

use plimsoll_plan::graph::{Graph, ParameterId};
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::{BufferId, Content};
use plimsoll_plan::shape::ValueType;

use crate::checkpoint::Tensor;
use crate::device::{Arguments, Device, MemoryReport};
use crate::element::{bytes_of, bytes_of_mut};
use crate::error::Error;
use crate::init;
use crate::inputs::{Inputs, Slice};
use crate::program::{Program, Region};
use crate::suggest;

/// A device with an arena in which the network's parameters live.
pub(crate) struct Session<D: Device> {
    device: D,
    arena: D::Arena,
    allocated: u64,
    /// The place of each parameter, the same in all of the plan's programs.
    parameters: Vec<Region>,
    /// The network's output on the host, once someone has asked for it.
    output: Vec<f32>,
}

impl<D: Device> Session<D> {
    /// Allocates the arena, for programs that all start with the parameters, and draws the initial values.
    pub fn new(mut device: D, bytes: u64, program: &Program, seed: u64) -> Result<Self, Error> {
        let arena = device.allocate(bytes)?;
        let parameters = program.regions[..program.graph.parameters.len()].to_vec();
        let mut session = Session { device, arena, allocated: bytes, parameters, output: Vec::new() };
        session.initialize(program, seed)?;
        Ok(session)
    }

    pub fn allocated_bytes(&self) -> u64 {
        self.allocated
    }

    pub fn memory_report(&self, planned: u64) -> MemoryReport {
        MemoryReport { planned, allocated: self.allocated, driver: self.device.driver_memory(&self.arena) }
    }

    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Writes the initial values of parameters and of the optimizer's state; the arena is zero elsewhere.
    fn initialize(&mut self, program: &Program, seed: u64) -> Result<(), Error> {
        let mut block = [0.0; init::BLOCK];
        for (index, parameter) in program.graph.parameters.iter().enumerate() {
            let elements = parameter.elements();
            for start in (0..elements).step_by(init::BLOCK) {
                let values = &mut block[..(elements - start).min(init::BLOCK as u64) as usize];
                init::fill(parameter.init, seed, index, start, values);
                self.device.upload(&mut self.arena, self.parameters[index].offset + start * 4, bytes_of(values))?;
            }
        }
        let start = match program.graph.training.as_ref().map(|training| &training.optimizer) {
            Some(Optimizer::Adagrad { initial_accumulator_value, .. }) => *initial_accumulator_value as f32,
            _ => 0.0,
        };
        if start != 0.0 {
            block.fill(start);
            let persistent = program.schedule.buffers[..program.schedule.persistent].iter().zip(&program.regions);
            for (_, region) in persistent.filter(|(b, _)| matches!(b.holds[0].content, Content::OptimizerState(..))) {
                let bytes = region.bytes(1);
                for from in (0..bytes).step_by(size_of_val(&block)) {
                    let values = &bytes_of(&block)[..(bytes - from).min(size_of_val(&block))];
                    self.device.upload(&mut self.arena, region.offset + from as u64, values)?;
                }
            }
        }
        Ok(())
    }

    /// Copies a batch into a program's input buffers and says how many samples it has.
    pub fn upload_inputs(&mut self, program: &D::Prepared, inputs: &impl Inputs) -> Result<usize, Error> {
        let program = program.as_ref();
        let declared = &program.graph.inputs;
        if inputs.count() != declared.len() {
            return Err(Error::InputCount {
                network: program.graph.name.clone(),
                expected: declared.len(),
                given: inputs.count(),
            });
        }
        let mut batch = None;
        for (i, input) in declared.iter().enumerate() {
            check(&|| format!("the input `{}`", input.name), &input.value_type, inputs.get(i), &mut batch)?;
        }
        let batch = batch.unwrap_or(0);
        if batch == 0 || batch > program.batch {
            return Err(Error::Batch { given: batch, planned: program.batch });
        }
        for (i, buffer) in program.schedule.inputs.iter().enumerate() {
            self.device.upload(&mut self.arena, program.region(*buffer).offset, inputs.get(i).bytes())?;
        }
        Ok(batch)
    }

    /// Checks the targets of a batch, whose type is `declared`.
    pub fn check_targets(
        &self,
        graph: &Graph,
        declared: &ValueType,
        batch: usize,
        targets: Slice<'_>,
    ) -> Result<(), Error> {
        let training = graph.training.as_ref().expect("there are targets only in training");
        check(&|| "the target tensor".to_string(), declared, targets, &mut Some(batch))?;
        if let (Loss::CrossEntropy { ignore_index, .. }, Slice::I32(targets)) = (&training.loss, targets) {
            let classes = graph.value_type(graph.output).shape.0[0] as usize;
            let wrong = |target: &i32| !(0..classes as i64).contains(&i64::from(*target)) && target != ignore_index;
            if let Some(i) = targets.iter().position(wrong) {
                return Err(Error::Target {
                    sample: i / (targets.len() / batch),
                    target: targets[i],
                    classes,
                    ignore_index: *ignore_index,
                });
            }
        }
        Ok(())
    }

    /// Whether a batch has anything to learn from: a mean over no targets is no number.
    pub fn check_counted(graph: &Graph, targets: Slice<'_>) -> Result<(), Error> {
        let loss = graph.training.as_ref().map(|training| &training.loss);
        if let (Some(Loss::CrossEntropy { ignore_index, .. }), Slice::I32(targets)) = (loss, targets)
            && targets.iter().all(|target| target == ignore_index)
        {
            return Err(Error::NothingToLearn { ignore_index: *ignore_index });
        }
        Ok(())
    }

    /// Copies bytes into a buffer.
    pub fn upload(&mut self, program: &D::Prepared, buffer: BufferId, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload(&mut self.arena, program.as_ref().region(buffer).offset, bytes)
    }

    /// Copies bytes into the arena.
    pub fn upload_at(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload(&mut self.arena, offset, bytes)
    }

    /// Fills tensors with zeros.
    pub fn clear(&mut self, tensors: &[Tensor]) -> Result<(), Error> {
        let zeros = [0; 4096];
        for tensor in tensors {
            for start in (0..tensor.bytes).step_by(zeros.len()) {
                let zeros = &zeros[..(tensor.bytes - start).min(zeros.len())];
                self.device.upload(&mut self.arena, tensor.offset + start as u64, zeros)?;
            }
        }
        Ok(())
    }

    /// Copies bytes out of the arena.
    pub fn download(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.device.download(&self.arena, offset, bytes)
    }

    /// One number out of a buffer.
    pub fn scalar(&mut self, program: &D::Prepared, buffer: BufferId) -> Result<f32, Error> {
        let mut value = [0.0];
        let offset = program.as_ref().region(buffer).offset;
        self.device.download(&self.arena, offset, bytes_of_mut(&mut value))?;
        Ok(value[0])
    }

    /// Runs steps of a program.
    pub fn run(
        &mut self,
        program: &mut D::Prepared,
        steps: std::ops::Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        self.device.run(program, &mut self.arena, steps, arguments)
    }

    /// Runs a program of inference on a batch. Gives the outputs, sample after sample.
    pub fn predict(&mut self, program: &mut D::Prepared, inputs: &impl Inputs) -> Result<&[f32], Error> {
        let batch = self.upload_inputs(program, inputs)?;
        let arguments = Arguments { batch, pass: 0, update: 0, learning_rate: 0.0, seed: 0 };
        let steps = program.as_ref().instructions.len();
        self.run(program, 0..steps, &arguments)?;
        let Program { graph, schedule, .. } = program.as_ref();
        let elements = graph.value_type(graph.output).elements() as usize;
        self.output.resize(batch * elements, 0.0);
        let output = schedule.output.expect("inference has an output");
        let offset = program.as_ref().region(output).offset;
        self.device.download(&self.arena, offset, bytes_of_mut(&mut self.output))?;
        Ok(&self.output)
    }

    /// The outputs of the last prediction.
    pub fn output(&self) -> &[f32] {
        &self.output
    }

    /// The values of a parameter.
    pub fn parameter(&mut self, graph: &Graph, name: &str) -> Result<Vec<f32>, Error> {
        let id = find(graph, name)?;
        let mut values = vec![0.0; graph.parameters[id.index()].elements() as usize];
        self.device.download(&self.arena, self.parameters[id.index()].offset, bytes_of_mut(&mut values))?;
        Ok(values)
    }

    /// Sets the values of a parameter.
    pub fn load_parameter(&mut self, graph: &Graph, name: &str, values: &[f32]) -> Result<(), Error> {
        let id = find(graph, name)?;
        let expected = graph.parameters[id.index()].elements();
        if values.len() as u64 != expected {
            return Err(Error::ParameterLength { name: name.to_string(), expected, given: values.len() });
        }
        self.device.upload(&mut self.arena, self.parameters[id.index()].offset, bytes_of(values))
    }
}

/// Checks the type and length of one tensor. `batch` is the number of samples, once something has said it. `name` is made
/// only for a message.
fn check(
    name: &dyn Fn() -> String,
    declared: &ValueType,
    given: Slice<'_>,
    batch: &mut Option<usize>,
) -> Result<(), Error> {
    if given.dtype() != declared.dtype {
        return Err(Error::ElementType { name: name(), expected: declared.dtype, given: given.dtype() });
    }
    let elements = declared.elements() as usize;
    if !given.len().is_multiple_of(elements) {
        return Err(Error::Length { name: name(), length: given.len(), elements });
    }
    let samples = given.len() / elements;
    let expected = *batch.get_or_insert(samples);
    if samples != expected {
        return Err(Error::Samples { name: name(), expected, given: samples });
    }
    Ok(())
}

/// The parameter of that name.
fn find(graph: &Graph, name: &str) -> Result<ParameterId, Error> {
    if let Some(index) = graph.parameters.iter().position(|parameter| parameter.path == name) {
        return Ok(ParameterId(index as u32));
    }
    let suggestion = suggest::nearest(name, graph.parameters.iter().map(|parameter| parameter.path.as_str()));
    Err(Error::NoParameter {
        network: graph.name.clone(),
        name: name.to_string(),
        suggestion: suggestion.map_or(String::new(), |path| format!(": is it `{path}`?")),
    })
}
