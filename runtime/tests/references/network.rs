//! From a case to a network of the planner.

use std::collections::HashMap;

use plimsoll_plan::arguments::{Arguments, Definition, Value};
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, MemberId, Training, ValueId};
use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};
use plimsoll_plan::layers::{self, Layer};
use plimsoll_plan::shape::DType;
use plimsoll_plan::{losses, optimizers};
use serde_json::{Map, Value as Json};

use crate::case::{Call, Case};

/// A network in the making.
struct Builder {
    builder: GraphBuilder,
    members: HashMap<String, MemberId>,
}

/// The path of the parameter that [`network`] adds to an input.
pub fn probe(input: &str) -> String {
    format!("probe.{input}")
}

/// The case's network, planned for `batch`.
///
/// `probed`: to every float input a `parameter` is added, a single zero. It changes no value, but the planner then computes
/// the gradient of the sum, which is that of the input.
///
/// `twice`: all layers are applied twice, and the output is half the sum of both results. This changes no value either,
/// but gradients are made of two terms.
pub fn network(case: &Case, batch: u64, probed: bool, twice: bool) -> Result<Graph, String> {
    let mut network = Builder { builder: GraphBuilder::new(&case.name), members: HashMap::new() };
    let mut inputs = HashMap::new();
    for input in &case.inputs {
        let dtype = DType::NAMES.iter().find(|(name, _)| *name == input.dtype).expect("a type of the language").1;
        let value = network.builder.input(&input.name, dtype, &input.shape).map_err(|error| error.message)?;
        inputs.insert(input.name.as_str(), value);
    }
    for input in case.inputs.iter().filter(|input| probed && input.dtype == "f32") {
        let name = &input.name;
        let shape = Map::from_iter([("shape".to_string(), Json::from(vec![1]))]);
        let zero = network.member(&probe(name), "parameter", &shape, &[], false)?;
        let sum =
            network.builder.apply(&probe(name), Layer::Arithmetic(Arithmetic::Add), &[inputs[name.as_str()], zero]);
        inputs.insert(name, sum.map_err(|error| error.message)?);
    }
    let mut output = network.calls(case, inputs.clone())?;
    if twice {
        let halves = [output, network.calls(case, inputs)?];
        let half = Layer::Affine(Affine { mul: 0.5, add: 0.0 });
        let mut scaled = Vec::new();
        for value in halves {
            scaled.push(network.builder.apply("half", half.clone(), &[value]).map_err(|error| error.message)?);
        }
        let sum = network.builder.apply("sum", Layer::Arithmetic(Arithmetic::Add), &scaled);
        output = sum.map_err(|error| error.message)?;
    }
    let training = Training {
        batch,
        optimizer: make(optimizers::find(&case.optimizer.name), &case.optimizer.arguments)?,
        loss: make(losses::find(&case.loss.name), &case.loss.arguments)?,
        accumulate: case.accumulate,
        clip_grad_norm: case.clip_grad_norm,
    };
    network.builder.finish(output, Some(training), None, Budget::default()).map_err(|error| error.message)
}

impl Builder {
    /// All calls of a case, on these inputs.
    fn calls<'a>(&mut self, case: &'a Case, mut values: HashMap<&'a str, ValueId>) -> Result<ValueId, String> {
        for call in &case.calls {
            let inputs: Vec<ValueId> = call.inputs.iter().map(|name| values[name.as_str()]).collect();
            values.insert(&call.output, self.call(call, &inputs)?);
        }
        Ok(values[case.output.as_str()])
    }

    fn call(&mut self, call: &Call, inputs: &[ValueId]) -> Result<ValueId, String> {
        let number = |name: &str| call.arguments[name].as_f64().expect("a number");
        let operator = match call.layer.as_str() {
            "add" => Layer::Arithmetic(Arithmetic::Add),
            "sub" => Layer::Arithmetic(Arithmetic::Sub),
            "mul" => Layer::Arithmetic(Arithmetic::Mul),
            "affine" => Layer::Affine(Affine { mul: number("mul"), add: number("add") }),
            "tied" => {
                let source = self.members[call.arguments["member"].as_str().expect("a path")];
                let member = self.builder.tied(&call.path, source);
                return self.builder.call(member, inputs).map_err(|error| error.message);
            }
            layer => return self.member(&call.path, layer, &call.arguments, inputs, call.frozen),
        };
        self.builder.apply(&call.path, operator, inputs).map_err(|error| error.message)
    }

    fn member(
        &mut self,
        path: &str,
        name: &str,
        given: &Map<String, Json>,
        inputs: &[ValueId],
        frozen: bool,
    ) -> Result<ValueId, String> {
        let definition = layers::find(name);
        let layer = make(definition, given)?;
        if !definition.is_some_and(|definition| definition.has_parameters) {
            return self.builder.apply(path, layer, inputs).map_err(|error| error.message);
        }
        let member = match self.members.get(path) {
            Some(&member) => member,
            None => {
                let member = self.builder.member(path, layer, frozen);
                self.members.insert(path.to_string(), member);
                member
            }
        };
        self.builder.call(member, inputs).map_err(|error| error.message)
    }
}

/// A layer, loss or optimizer, by its definition and the arguments that a case gives by name.
fn make<T>(definition: Option<&'static Definition<T>>, given: &Map<String, Json>) -> Result<T, String> {
    let definition = definition.ok_or("the language does not know it")?;
    if let Some(unknown) = given.keys().find(|key| !definition.arguments.iter().any(|argument| argument.name == *key)) {
        return Err(format!("`{}` has no argument `{unknown}`", definition.name));
    }
    let values = definition.arguments.iter().map(|argument| given.get(argument.name).map(value)).collect();
    let arguments = Arguments::check(definition.arguments, values);
    let arguments = arguments.map_err(|errors| errors[0].message.clone())?;
    (definition.build)(&arguments).map_err(|error| error.message)
}

fn value(json: &Json) -> Value {
    match json {
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap()), Value::Int),
        Json::String(word) => Value::Word(word.clone()),
        Json::Array(values) => Value::List(values.iter().map(value).collect()),
        Json::Null | Json::Object(_) => unreachable!("no argument is such"),
    }
}
