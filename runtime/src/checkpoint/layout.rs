//! Which tensors a checkpoint has, under which names, and where they lie in the arena.

use std::collections::BTreeSet;

use plimsoll_plan::graph::{Graph, ParameterId, ParameterRole};
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::Content;

use crate::program::{Program, Region};

/// What the names of tensors begin with that are no part of PyTorch's `state_dict`. A path in a network has no slash.
pub const OWN: &str = "plimsoll/";

/// What the names of gradients begin with that wait for more batches.
pub const GRADIENT: &str = "plimsoll/gradient/";

/// The momentum of SGD, as PyTorch names it.
const MOMENTUM: &str = "momentum_buffer";

/// The same times its factor, ready for the next gradient to be added.
const DECAYED_MOMENTUM: &str = "decayed_momentum_buffer";

/// The factor of SGD's momentum.
fn momentum(graph: &Graph) -> Option<f32> {
    match graph.training.as_ref()?.optimizer {
        Optimizer::Sgd { momentum, .. } if momentum != 0.0 => Some(momentum as f32),
        _ => None,
    }
}

/// A tensor of `f32`.
#[derive(Debug)]
pub(crate) struct Tensor {
    /// Its name in the file.
    pub name: String,
    /// Its shape, as PyTorch stores it.
    pub shape: Vec<usize>,
    /// Its first byte in the arena.
    pub offset: u64,
    /// Its bytes.
    pub bytes: usize,
    /// What stands for it in files of runs whose plan was another: a name, and the factor that makes this tensor of that.
    pub stand_in: Option<(String, f32)>,
}

/// The tensors of a network.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The network's name, for messages.
    pub network: String,
    /// Parameters and running statistics.
    pub weights: Vec<Tensor>,
    /// The optimizer's state.
    pub optimizer: Vec<Tensor>,
    /// Gradients that wait for more batches, where several make an update.
    pub gradients: Vec<Tensor>,
    /// The names of PyTorch's counters of batches: one `i64` beside each pair of running statistics.
    pub counters: Vec<String>,
}

impl Layout {
    /// The layout of a network, of which `program` is any program, in training or not.
    pub fn new(program: &Program) -> Layout {
        let graph: &Graph = &program.graph;
        let mut layout = Layout {
            network: graph.name.clone(),
            weights: Vec::new(),
            optimizer: Vec::new(),
            gradients: Vec::new(),
            counters: counters(graph),
        };
        let states = graph.training.as_ref().map_or(&[][..], |training| training.optimizer.state());
        let persistent = &program.schedule.buffers[..program.schedule.persistent];
        for (buffer, region) in persistent.iter().zip(&program.regions) {
            let path = |id: ParameterId| graph.parameters[id.index()].path.clone();
            match buffer.holds[0].content {
                Content::Parameter(id) => layout.weights.push(tensor(graph, id, path(id), region)),
                Content::OptimizerState(id, which) => {
                    let name = |state: &str| format!("{OWN}optimizer/{state}/{}", path(id));
                    let state = states[which as usize];
                    let whole = tensor(graph, id, name(state), region);
                    layout.optimizer.push(match momentum(graph) {
                        Some(factor) if state == MOMENTUM && program.adds_to_momentum() => {
                            Tensor { stand_in: Some((whole.name, factor)), name: name(DECAYED_MOMENTUM), ..whole }
                        }
                        // A factor so small that its reciprocal is none has left nothing of the momentum.
                        Some(factor) if state == MOMENTUM => {
                            let back = if (1.0 / factor).is_finite() { 1.0 / factor } else { 0.0 };
                            Tensor { stand_in: Some((name(DECAYED_MOMENTUM), back)), ..whole }
                        }
                        _ => whole,
                    });
                }
                Content::Gradient(id) => {
                    layout.gradients.push(tensor(graph, id, format!("{GRADIENT}{}", path(id)), region));
                }
                _ => {}
            }
        }
        layout
    }

    /// A name that two parameters have. The language refuses such networks; graphs may be built without it.
    pub fn name_twice(&self) -> Option<&str> {
        let mut names = BTreeSet::new();
        let all = self.weights.iter().map(|tensor| &tensor.name).chain(&self.counters);
        all.into_iter().find(|name| !names.insert(*name)).map(String::as_str)
    }
}

fn tensor(graph: &Graph, id: ParameterId, name: String, region: &Region) -> Tensor {
    let shape = graph.parameters[id.index()].shape.0.iter().map(|extent| *extent as usize).collect();
    Tensor { name, shape, offset: region.offset, bytes: region.bytes(1), stand_in: None }
}

fn counters(graph: &Graph) -> Vec<String> {
    let buffers = graph.parameters.iter().filter(|parameter| parameter.role == ParameterRole::Buffer);
    let norms = buffers.filter_map(|parameter| parameter.path.strip_suffix("running_mean"));
    norms.map(|path| format!("{path}num_batches_tracked")).collect()
}
