//! Blocks put in place: members get their paths, conditions are decided, repetitions are written out.

use std::collections::HashSet;

use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::MemberId;

use super::{Lowering, Site, join};
use crate::ast::{Body, Call, Forward, Layer, LayerDefinition, Member, Slots, Target};
use crate::evaluate::{Scope, evaluate, shown};
use crate::limits;

/// A network or block in its place.
pub(super) struct Instance<'a> {
    /// Its path; empty for the network.
    pub path: String,
    /// What its parameters stand for.
    pub parameters: Vec<Option<Value>>,
    /// Its members: those of the source in order, or, without a `forward`, all that are spliced in too.
    pub members: Vec<Node<'a>>,
    /// How they are connected, where they are no chain.
    pub forward: Option<&'a Forward>,
}

/// A member in its place.
pub(super) enum Node<'a> {
    /// A mistake that was reported.
    Unknown,
    /// A choice without `else`, not taken.
    Identity,
    /// A layer.
    Layer(LayerNode<'a>),
    /// `tied(member)`.
    Tied {
        /// Its path.
        path: String,
        /// The path of the member whose weight it uses.
        source: String,
        /// Whether `#[freeze]` stands before it or further out.
        frozen: bool,
        /// Where it is declared.
        call: &'a Call,
    },
    /// A list or repetition.
    Sequence(Vec<Node<'a>>, Site<'a>),
    /// A block.
    Block(Box<Instance<'a>>, &'a Call),
}

/// A layer in its place.
pub(super) struct LayerNode<'a> {
    /// What the graph knows it by.
    pub member: MemberId,
    /// Its path.
    pub path: String,
    /// Where it is declared.
    pub call: &'a Call,
    /// Its signature.
    pub definition: LayerDefinition,
    /// Its arguments.
    pub slots: &'a Slots,
}

/// What surrounds a member.
#[derive(Clone, Copy)]
struct Surroundings<'s> {
    /// The path of the list or block it is in.
    path: &'s str,
    /// The path of the network or block whose body it is written in.
    body: &'s str,
    /// What that block's parameters stand for.
    parameters: &'s [Option<Value>],
    /// `#[freeze]` further out.
    frozen: bool,
}

/// The members of a list as they are collected.
#[derive(Default)]
struct Elements<'a> {
    nodes: Vec<Node<'a>>,
    /// The names of those that are spliced in, and of those beside them.
    names: HashSet<&'a str>,
}

impl<'a> Lowering<'a, '_> {
    /// A body in its place.
    pub(super) fn instance(
        &mut self,
        body: &'a Body,
        path: String,
        parameters: Vec<Option<Value>>,
        frozen: bool,
    ) -> Instance<'a> {
        let around = Surroundings { path: &path, body: &path, parameters: &parameters, frozen };
        let members = self.elements(&body.members, around);
        Instance { path, parameters, members, forward: body.forward.as_ref() }
    }

    fn elements(&mut self, members: &'a [Member], around: Surroundings) -> Vec<Node<'a>> {
        let mut elements = Elements::default();
        let has_splices = members.iter().any(|member| member.splice.is_some());
        for member in members {
            self.element(member, around, has_splices, &mut elements);
        }
        elements.nodes
    }

    /// One element of a list, or several where one is spliced in.
    fn element(&mut self, member: &'a Member, around: Surroundings, beside_splices: bool, elements: &mut Elements<'a>) {
        let site = Site::new(member.layer.place(), member);
        if !self.step(site) {
            return;
        }
        let around = Surroundings { frozen: around.frozen || member.frozen, ..around };
        if member.splice.is_some() {
            if self.enter(site) {
                self.splice(&member.layer, around, elements);
                self.leave();
            }
            return;
        }
        let path = match &member.name {
            Some(name) => {
                if beside_splices && !elements.names.insert(&name.text) && self.report.first_at(name) {
                    let message = format!("the name `{name}` is used twice in this list");
                    self.report.error(
                        name,
                        message,
                        "what `..` splices in keeps its names: rename one, or leave the dots out",
                    );
                }
                join(around.path, &name.text)
            }
            None => join(around.path, &elements.nodes.len().to_string()),
        };
        let node = self.layer(&member.layer, path, around);
        elements.nodes.push(node);
    }

    /// The members of a list, repetition, choice or block, in the place of one element.
    fn splice(&mut self, layer: &'a Layer, around: Surroundings, elements: &mut Elements<'a>) {
        match layer {
            Layer::List(members, _) => {
                for member in members {
                    self.element(member, around, true, elements);
                }
            }
            Layer::Repeat(member, ..) => {
                for _ in 0..self.count(layer, around) {
                    if self.is_exhausted() {
                        return;
                    }
                    self.element(member, around, true, elements);
                }
            }
            Layer::If(..) => {
                if let Choice::Taken(branch) = self.choice(layer, around) {
                    self.splice(branch, around, elements);
                }
            }
            Layer::Call(call) => match &call.target {
                Target::Block { block, slots } => {
                    let body = &self.blocks[*block].body;
                    let parameters = self.block_arguments(*block, call, slots, around.parameters);
                    let around = Surroundings { body: around.path, parameters: &parameters, ..around };
                    if body.forward.is_some() {
                        return;
                    }
                    for member in &body.members {
                        self.element(member, around, true, elements);
                    }
                }
                Target::Unknown => elements.nodes.push(Node::Unknown),
                _ => {
                    if self.report.first_at(call) {
                        let message = format!("`{}` is one layer, so there is nothing to splice in", call.name);
                        self.report.error(call.place, message, "put it into a list: `[layer]`");
                    }
                    elements.nodes.push(Node::Unknown);
                }
            },
            Layer::Unknown => elements.nodes.push(Node::Unknown),
        }
    }

    fn layer(&mut self, layer: &'a Layer, path: String, around: Surroundings) -> Node<'a> {
        let site = Site::new(layer.place(), layer);
        // A long path is written more than once.
        if !self.report.work(1 + path.len() / 64, site.place) || !self.enter(site) {
            return Node::Unknown;
        }
        let node = match layer {
            Layer::Call(call) => self.call_node(call, path, around),
            Layer::List(members, _) => {
                let nodes = self.elements(members, Surroundings { path: &path, ..around });
                Node::Sequence(nodes, site)
            }
            Layer::Repeat(member, ..) => {
                let mut elements = Elements::default();
                for _ in 0..self.count(layer, around) {
                    if self.is_exhausted() {
                        break;
                    }
                    self.element(member, Surroundings { path: &path, ..around }, false, &mut elements);
                }
                Node::Sequence(elements.nodes, site)
            }
            Layer::If(..) => match self.choice(layer, around) {
                Choice::Taken(branch) => self.layer(branch, path, around),
                Choice::None => Node::Identity,
                Choice::Unknown => Node::Unknown,
            },
            Layer::Unknown => Node::Unknown,
        };
        self.leave();
        node
    }

    fn call_node(&mut self, call: &'a Call, path: String, around: Surroundings) -> Node<'a> {
        match &call.target {
            Target::Layer { definition, slots, .. } => {
                let Some(layer) = self.build(call, &path, definition.0, slots, around.parameters, &[]) else {
                    return Node::Unknown;
                };
                self.layers += 1;
                if self.layers >= limits::LAYERS {
                    if self.layers == limits::LAYERS {
                        let message = format!("the network has more than {} layers", limits::LAYERS);
                        self.report.error(call.place, message, "repeat fewer times");
                    }
                    return Node::Unknown;
                }
                let member = self.builder.member(&path, layer, around.frozen);
                if definition.has_parameters {
                    self.paths.insert(path.clone(), member);
                    if around.frozen {
                        self.frozen.insert(member);
                    }
                }
                Node::Layer(LayerNode { member, path, call, definition: *definition, slots })
            }
            Target::Block { block, slots } => {
                let parameters = self.block_arguments(*block, call, slots, around.parameters);
                let body = &self.blocks[*block].body;
                Node::Block(Box::new(self.instance(body, path, parameters, around.frozen)), call)
            }
            Target::Tied(names) => {
                let mut source = around.body.to_string();
                for name in names {
                    source = join(&source, &name.text);
                }
                Node::Tied { path, source, frozen: around.frozen, call }
            }
            _ => Node::Unknown,
        }
    }

    /// What a block's parameters stand for in a call.
    fn block_arguments(
        &mut self,
        block: usize,
        call: &Call,
        slots: &Slots,
        parameters: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        let block = &self.blocks[block];
        let mut values: Vec<Option<Value>> = Vec::with_capacity(slots.len());
        for (parameter, slot) in block.parameters.iter().zip(slots) {
            let value = match (slot.and_then(|i| call.arguments.get(i)), &parameter.default) {
                (Some(argument), _) => {
                    let scope = Scope { consts: self.consts, parameters, locals: &[] };
                    evaluate(&argument.value, scope, self.report)
                }
                (None, Some(default)) => {
                    let scope = Scope { consts: self.consts, parameters: &values, locals: &[] };
                    evaluate(default, scope, self.report)
                }
                (None, None) => None,
            };
            values.push(value);
        }
        values
    }

    /// How many copies `[a; n]` makes.
    fn count(&mut self, layer: &'a Layer, around: Surroundings) -> usize {
        let Layer::Repeat(_, count, _) = layer else { return 0 };
        let scope = Scope { consts: self.consts, parameters: around.parameters, locals: &[] };
        let value = evaluate(count, scope, self.report);
        let (message, help) = match value {
            None => return 0,
            Some(Value::Int(n)) => match usize::try_from(n) {
                Ok(n) if n <= limits::LAYERS => return n,
                Ok(n) => (
                    format!("{n} copies are more than the {} layers that a network may have", limits::LAYERS),
                    "repeat fewer times",
                ),
                Err(_) => (format!("{n} copies"), "the number of copies is at least 0"),
            },
            Some(other) => (format!("{} copies", shown(&other)), "the number of copies is an integer of at least 0"),
        };
        if self.report.first_at(count) {
            self.report.error(count.place, message, help);
        }
        0
    }

    /// The branch that is taken.
    fn choice(&mut self, layer: &'a Layer, around: Surroundings) -> Choice<'a> {
        let Layer::If(branches, _) = layer else { return Choice::Unknown };
        for (condition, branch) in branches {
            let Some(condition) = condition else { return Choice::Taken(branch) };
            let scope = Scope { consts: self.consts, parameters: around.parameters, locals: &[] };
            match evaluate(condition, scope, self.report) {
                Some(Value::Bool(true)) => return Choice::Taken(branch),
                Some(Value::Bool(false)) => {}
                None => return Choice::Unknown,
                Some(other) => {
                    if self.report.first_at(condition) {
                        let message = format!("the condition is {}, neither true nor false", shown(&other));
                        self.report.error(condition.place, message, "compare it: `if stride != 1 { .. }`");
                    }
                    return Choice::Unknown;
                }
            }
        }
        Choice::None
    }

    /// Whether a limit was passed, so that more repetitions would only pass it again.
    fn is_exhausted(&self) -> bool {
        self.report.is_exhausted() || self.layers >= limits::LAYERS
    }
}

/// What a choice comes to.
enum Choice<'a> {
    Taken(&'a Layer),
    None,
    Unknown,
}
