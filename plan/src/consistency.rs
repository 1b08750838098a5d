//! Whether a network holds together: what [`GraphBuilder`](crate::graph::GraphBuilder) makes always does, but a [`Graph`]'s
//! fields are open, and a plan's bytes may be damaged. Checked before anything is planned.

use std::ops::RangeInclusive;

use crate::graph::{Graph, Node, ParameterRole, check_extents};
use crate::layers::{self, Layer};
use crate::placement::PlanError;
use crate::shape::{DType, ValueType};

/// Checks that every reference leads somewhere earlier, that every type and parameter is what its layer makes of its
/// inputs, and that the output suits the loss.
///
/// # Errors
/// The first thing that does not hold, as [`PlanError::Inconsistent`].
pub fn check(graph: &Graph) -> Result<(), PlanError> {
    let found = check_values(graph).and_then(|()| check_training(graph));
    found.map_err(PlanError::Inconsistent)
}

fn check_values(graph: &Graph) -> Result<(), String> {
    if graph.types.len() != graph.inputs.len() + graph.nodes.len() {
        return Err(format!(
            "it has {} types for {} values",
            graph.types.len(),
            graph.inputs.len() + graph.nodes.len()
        ));
    }
    for (input, found) in graph.inputs.iter().zip(&graph.types) {
        let declared = &input.value_type;
        if declared != found || !declared.batched {
            return Err(format!("the input `{}` is {declared}, but its value is {found}", input.name));
        }
        check_extents(&declared.shape).map_err(|error| error.message)?;
    }
    for parameter in &graph.parameters {
        check_extents(&parameter.shape).map_err(|error| error.message)?;
    }
    for (node, n) in graph.nodes.iter().enumerate() {
        check_node(graph, node, n).map_err(|problem| format!("in `{}`: {problem}", n.label()))?;
    }
    if graph.output.index() >= graph.types.len() {
        return Err(format!("the output is value {}, which does not exist", graph.output.0));
    }
    Ok(())
}

/// How many values a layer takes.
fn arity(layer: &Layer) -> RangeInclusive<usize> {
    match layer {
        Layer::Arithmetic(_) => 2..=2,
        Layer::Affine(_) => 1..=1,
        other => layers::find(other.rule().kind()).map_or(1..=1, |definition| definition.inputs.clone()),
    }
}

fn check_node(graph: &Graph, node: usize, n: &Node) -> Result<(), String> {
    let own = graph.value_of(node);
    if !arity(&n.layer).contains(&n.inputs.len()) {
        return Err(format!("it is applied to {} values", n.inputs.len()));
    }
    if let Some(late) = n.inputs.iter().find(|input| input.index() >= own.index()) {
        return Err(format!("it reads value {}, which is not computed before", late.0));
    }
    let inputs = graph.value_types(&n.inputs);
    let output = n.layer.rule().output(&inputs)?;
    check_extents(&output.shape).map_err(|error| error.message)?;
    if &output != graph.value_type(own) {
        return Err(format!("its output is {output}, but the network says {}", graph.value_type(own)));
    }
    check_parameters(graph, n, &inputs)
}

fn check_parameters(graph: &Graph, n: &Node, inputs: &[ValueType]) -> Result<(), String> {
    let specs = n.layer.rule().parameters(inputs);
    if specs.len() != n.parameters.len() {
        return Err(format!("it has {} parameters instead of {}", n.parameters.len(), specs.len()));
    }
    for (id, spec) in n.parameters.iter().zip(&specs) {
        let parameter = graph.parameters.get(id.index()).ok_or(format!("parameter {} does not exist", id.0))?;
        if parameter.shape != spec.shape {
            return Err(format!("`{}` is {} instead of {}", parameter.path, parameter.shape, spec.shape));
        }
        if spec.trained == (parameter.role == ParameterRole::Buffer) {
            return Err(format!("`{}` is {:?}", parameter.path, parameter.role));
        }
    }
    Ok(())
}

fn check_training(graph: &Graph) -> Result<(), String> {
    let output = graph.value_type(graph.output);
    if output.dtype != DType::F32 || !output.batched {
        return Err(format!("its output is {output}, not f32 values computed from an input"));
    }
    let Some(training) = &graph.training else { return Ok(()) };
    if training.accumulate == 0 {
        return Err("`accumulate` must be at least 1, not 0".to_string());
    }
    let target = training.loss.target(output)?;
    check_extents(&target.shape).map_err(|error| error.message)
}
