//! The syntax tree to plan's graph: blocks are put in place, then values flow through them.
//!
//! Blocks and repetitions are walked by reference as often as they are used; nothing of the source is copied. A mistake in
//! a block is reported once. What can't be known after a mistake is passed over in silence.

mod apply;
mod consts;
mod forward;
mod instantiate;
mod settings;

use std::collections::{HashMap, HashSet};

use plimsoll_plan::arguments::{ArgumentError, Arguments, Definition, Kind, MAX_INTEGER, Value};
use plimsoll_plan::graph::{Graph, GraphBuilder, MemberId, ValueId};

pub use consts::evaluate_consts;

use crate::ast::{Block, Call, Input, Network, Place, Slots, Source};
use crate::evaluate::{Scope, evaluate, shown};
use crate::limits;
use crate::report::Report;
use crate::resolve::{describe, place_of};

/// The graph of a network, unless there are mistakes. `consts` are the values of its consts.
pub fn lower(source: &Source, consts: &[Option<Value>], report: &mut Report) -> Option<Graph> {
    let network = source.network.as_ref()?;
    let mut lowering = Lowering {
        blocks: &source.blocks,
        consts,
        builder: GraphBuilder::new(&network.name.text),
        paths: HashMap::new(),
        frozen: HashSet::new(),
        tied: HashMap::new(),
        layers: 0,
        applied: 0,
        depth: 0,
        report,
    };
    lowering.network(network)
}

struct Lowering<'a, 'r> {
    blocks: &'a [Block],
    consts: &'a [Option<Value>],
    builder: GraphBuilder,
    /// The layers with parameters by path, for `tied`.
    paths: HashMap<String, MemberId>,
    /// Of these, the frozen ones.
    frozen: HashSet<MemberId>,
    /// The tied layers by path.
    tied: HashMap<String, MemberId>,
    /// Layers declared so far.
    layers: usize,
    /// Layers and operators applied so far.
    applied: usize,
    depth: usize,
    report: &'r mut Report,
}

/// Where something is applied, for mistakes in how.
#[derive(Clone, Copy)]
struct Site<'a> {
    place: Place,
    /// The node of the syntax tree, by address.
    node: usize,
    /// What is applied there, as the user calls it.
    what: &'a str,
}

impl<'a> Site<'a> {
    fn new<T>(place: impl Into<Place>, node: &T) -> Self {
        Site { place: place.into(), node: std::ptr::from_ref(node).addr(), what: "this" }
    }

    fn call(call: &'a Call) -> Self {
        Site { what: &call.name.text, ..Site::new(&call.name, call) }
    }
}

impl<'a> Lowering<'a, '_> {
    fn network(&mut self, network: &'a Network) -> Option<Graph> {
        let inputs: Vec<Option<ValueId>> = network.inputs.iter().map(|input| self.input(input)).collect();
        let training = network.train.as_ref().map(|settings| self.training(settings));
        let inference = network.infer.as_ref().map(|settings| self.inference(settings));
        let root = self.instance(&network.body, String::new(), Vec::new(), false);
        let takes = network.body.forward.as_ref().map_or(1, |forward| forward.inputs.len());
        if takes != inputs.len() {
            return None;
        }
        let output = self.flow(&root, &inputs, Site::new(&network.name, &network.name))?;
        self.finish(network, output, training, inference)
    }

    fn input(&mut self, input: &Input) -> Option<ValueId> {
        if input.shape.len() > limits::RANK {
            let message = format!("an input of {} axes", input.shape.len());
            self.report.error(input.place, message, format!("shapes have at most {} axes", limits::RANK));
            return None;
        }
        let mut shape = Some(Vec::with_capacity(input.shape.len()));
        for size in &input.shape {
            let scope = Scope { consts: self.consts, parameters: &[], locals: &[] };
            let value = evaluate(size, scope, self.report);
            match value {
                Some(Value::Int(v)) if (1..=MAX_INTEGER).contains(&v) => {
                    if let Some(shape) = &mut shape {
                        shape.push(v.unsigned_abs());
                    }
                    continue;
                }
                Some(value) => {
                    let message = format!("a size of {}", shown(&value));
                    self.report.error(size.place, message, format!("sizes are integers from 1 to {MAX_INTEGER}"));
                }
                None => {}
            }
            shape = None;
        }
        match self.builder.input(&input.name.text, input.dtype?, &shape?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report.push(input.place, with_help(&error.message, "make it smaller"));
                None
            }
        }
    }

    /// Makes a layer, loss or optimizer of a call.
    fn build<T: 'static>(
        &mut self,
        call: &Call,
        path: &str,
        definition: &'static Definition<T>,
        slots: &Slots,
        parameters: &[Option<Value>],
        locals: &[Option<Value>],
    ) -> Option<T> {
        let mut given = Vec::with_capacity(slots.len());
        let mut all_known = true;
        for (slot, argument) in slots.iter().zip(definition.arguments) {
            given.push(match slot {
                Some(i) => {
                    let scope = Scope { consts: self.consts, parameters, locals };
                    let expr = &call.arguments.get(*i)?.value;
                    let mut value = evaluate(expr, scope, self.report);
                    if let (Kind::Dims | Kind::Counts, Some(Value::List(axes))) = (argument.kind, &value)
                        && axes.len() > limits::RANK
                    {
                        if self.report.first_at(expr) {
                            let message = format!("`{}` has {} elements", argument.name, axes.len());
                            let help = format!("shapes have at most {} axes", limits::RANK);
                            self.report.error(expr.place, message, help);
                        }
                        value = None;
                    }
                    all_known &= value.is_some();
                    value
                }
                None => None,
            });
        }
        if !all_known {
            return None;
        }
        let large = given.iter().position(|value| value.as_ref().is_some_and(is_too_large));
        match Arguments::check(definition.arguments, given) {
            Ok(arguments) => match (definition.build)(&arguments) {
                Ok(made) => Some(made),
                Err(error) => {
                    self.argument_error(call, definition.arguments, slots, path, &error);
                    None
                }
            },
            Err(errors) => {
                for mut error in errors {
                    if large.is_some_and(|slot| definition.arguments[slot].name == error.argument) {
                        let name = error.argument;
                        error.message = format!("`{name}` is too large\nhelp: integers may be at most {MAX_INTEGER}");
                    }
                    self.argument_error(call, definition.arguments, slots, path, &error);
                }
                None
            }
        }
    }

    fn argument_error(
        &mut self,
        call: &Call,
        signature: &[plimsoll_plan::arguments::Argument],
        slots: &Slots,
        path: &str,
        error: &ArgumentError,
    ) {
        let slot = signature.iter().position(|a| a.name == error.argument);
        let given = slot.and_then(|slot| slots.get(slot).copied().flatten());
        let first = match given.and_then(|i| call.arguments.get(i)) {
            Some(argument) => self.report.first_at(argument),
            None => self.report.first_at(call),
        };
        if first {
            let help = format!("`{}` takes {}", call.name, describe(signature));
            // It may show a long list.
            let lines: Vec<String> = error.message.lines().map(|l| limits::shortened(l, 3 * limits::SHOWN)).collect();
            let mut message = with_help(&lines.join("\n"), &help);
            message.push_str(by_position(call, given));
            message.push_str(&note(path));
            self.report.push(place_of(call, slots, slot), message);
        }
    }

    /// Reports that a layer can't be applied: at the argument that the message speaks of, else at the layer's name.
    fn layer_error(
        &mut self,
        call: &Call,
        signature: &[plimsoll_plan::arguments::Argument],
        slots: &Slots,
        path: &str,
        message: &str,
    ) {
        if !self.report.first_at(call) {
            return;
        }
        let first_line = message.lines().next().unwrap_or("");
        let mut words = first_line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty());
        let slot = words.find_map(|word| {
            let slot = signature.iter().position(|argument| argument.name == word)?;
            slots.get(slot).copied().flatten().map(|_| slot)
        });
        let mut message = with_help(message, "change this layer, or what comes before it");
        message.push_str(by_position(call, slot.and_then(|slot| slots.get(slot).copied().flatten())));
        message.push_str(&note(path));
        self.report.push(place_of(call, slots, slot), message);
    }

    /// Counts a step. `false`: the lowering has taken too many, and ends.
    fn step(&mut self, site: Site) -> bool {
        self.report.work(1, site.place)
    }

    /// Counts a layer or operator that is applied. `false`: they are too many.
    fn count_applied(&mut self, place: Place) -> bool {
        self.applied += 1;
        if self.applied == limits::LAYERS + 1 {
            let message = format!("the network applies more than {} layers", limits::LAYERS);
            self.report.error(place, message, "call fewer members, or the same ones less often");
        }
        self.applied <= limits::LAYERS
    }

    /// Goes one level deeper. `false`: too deep. Every `true` is followed by [`leave`](Lowering::leave).
    fn enter(&mut self, site: Site) -> bool {
        if self.depth >= limits::DEPTH {
            if self.report.first_at_address(site.node) {
                let message = format!("blocks, lists and expressions nest deeper than {} levels", limits::DEPTH);
                self.report.error(site.place, message, "use fewer levels of blocks");
            }
            return false;
        }
        self.depth += 1;
        true
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }
}

/// Which of many a mistake is met in, where a block or list may stand for many.
fn note(path: &str) -> String {
    if path.contains('.') { format!("\nnote: this is `{path}`") } else { String::new() }
}

/// What to add to a help about an argument that is there by its position, as PyTorch's second one often is.
fn by_position(call: &Call, given: Option<usize>) -> &'static str {
    match given {
        Some(i @ 1..) if call.arguments[i].name.is_none() => "; input sizes are inferred and never given",
        _ => "",
    }
}

/// Whether a value holds an integer that no argument may be.
fn is_too_large(value: &Value) -> bool {
    match value {
        Value::Int(v) => *v > MAX_INTEGER,
        Value::List(values) => values.iter().any(is_too_large),
        _ => false,
    }
}

/// A message of plan's with a remedy, which it may have already.
fn with_help(message: &str, help: &str) -> String {
    if message.contains("\nhelp: ") { message.to_string() } else { format!("{message}\nhelp: {help}") }
}

/// `name` under the path `prefix`.
fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") }
}
