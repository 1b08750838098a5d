//! What each name refers to, filled into the syntax tree once, however often a block is used afterwards.
//!
//! Names of layers, blocks, members, consts and `let`s become indices; arguments are matched with signatures. A name
//! that refers to nothing is reported here and left `Unknown`, which later stages pass over in silence.

mod arguments;
mod expressions;
mod forward;

use std::collections::{HashMap, HashSet};

use plimsoll_plan::layers;

use crate::ast::{Argument, Block, Body, Call, Expr, ExprKind, Layer, Member, Name, Place, Source, Target};
use crate::report::Report;
use crate::suggest;
pub use arguments::{describe, place_of};
use expressions::Sort;

/// Fills in what each name refers to.
pub fn resolve(source: &mut Source, report: &mut Report) {
    let Source { network, blocks } = source;
    let Some(network) = network else { return };
    let mut resolver = Resolver {
        network: network.name.text.clone(),
        consts: index(network.consts.iter().map(|c| &c.name)),
        block_names: index(blocks.iter().map(|b| &b.name)),
        signatures: blocks.iter().map(Signature::new).collect(),
        blocks_used: vec![false; blocks.len()],
        parameters: HashMap::new(),
        members: HashMap::new(),
        members_used: Vec::new(),
        incomplete: false,
        unknown_seen: false,
        outside: HashSet::new(),
        block: None,
        values: Vec::new(),
        locals: Vec::new(),
        in_forward: false,
        report,
    };
    for item in &mut network.consts {
        if let Some(value) = &mut item.value {
            resolver.number(value);
        }
    }
    for input in &mut network.inputs {
        for size in &mut input.shape {
            resolver.number(size);
        }
    }
    for settings in network.train.iter_mut().chain(&mut network.infer) {
        resolver.settings(settings);
    }
    resolver.body(&mut network.body);
    for block in blocks.iter_mut() {
        resolver.block(block);
    }
    for (block, used) in blocks.iter_mut().zip(resolver.blocks_used) {
        block.used = used;
    }
}

/// The first index of each name.
fn index<'a>(names: impl IntoIterator<Item = &'a Name>) -> HashMap<String, usize> {
    let mut map = HashMap::new();
    for (i, name) in names.into_iter().enumerate() {
        map.entry(name.text.clone()).or_insert(i);
    }
    map
}

/// How a block is called.
struct Signature {
    parameters: Vec<(String, bool)>,
    complete: bool,
    has_forward: bool,
}

impl Signature {
    fn new(block: &Block) -> Self {
        Signature {
            parameters: block.parameters.iter().map(|p| (p.name.text.clone(), p.default.is_some())).collect(),
            complete: block.parameters_known
                && index(block.parameters.iter().map(|p| &p.name)).len() == block.parameters.len(),
            has_forward: block.body.forward.is_some(),
        }
    }
}

/// The names in scope.
struct Resolver<'r> {
    network: String,
    consts: HashMap<String, usize>,
    block_names: HashMap<String, usize>,
    signatures: Vec<Signature>,
    blocks_used: Vec<bool>,
    /// Of the block at hand.
    parameters: HashMap<String, usize>,
    /// Of the body at hand.
    members: HashMap<String, usize>,
    members_used: Vec<bool>,
    /// Whether the body at hand could not be read as a whole.
    incomplete: bool,
    /// Whether the `forward` at hand has a name that refers to nothing.
    unknown_seen: bool,
    /// The names from outside that were reported: declaring one helps wherever it is used.
    outside: HashSet<String>,
    /// The block at hand.
    block: Option<String>,
    /// Of the members of the body at hand, those that are values themselves.
    values: Vec<bool>,
    /// Inputs and `let`s of the `forward` at hand.
    locals: Vec<Local>,
    in_forward: bool,
    report: &'r mut Report,
}

/// An input of `forward` or a `let`.
struct Local {
    name: String,
    sort: Sort,
    used: bool,
}

impl Resolver<'_> {
    fn block(&mut self, block: &mut Block) {
        for (i, parameter) in block.parameters.iter_mut().enumerate() {
            if let Some(default) = &mut parameter.default {
                self.number(default);
            }
            self.parameters.entry(parameter.name.text.clone()).or_insert(i);
        }
        self.block = Some(block.name.text.clone());
        self.body(&mut block.body);
        self.block = None;
        self.parameters.clear();
    }

    fn body(&mut self, body: &mut Body) {
        self.incomplete = body.incomplete;
        self.unknown_seen = false;
        self.members_used = vec![body.forward.is_none(); body.members.len()];
        self.members.clear();
        let is_value = |member: &Member| matches!(&member.layer, Layer::Call(call) if call.name.text == "parameter");
        self.values = body.members.iter().map(is_value).collect();
        for (i, member) in body.members.iter().enumerate() {
            if let Some(name) = &member.name {
                self.members.entry(name.text.clone()).or_insert(i);
            }
        }
        for member in &mut body.members {
            self.member(member);
        }
        if let Some(forward) = &mut body.forward {
            self.forward(forward);
        }
        for (member, used) in body.members.iter_mut().zip(&self.members_used) {
            member.used = *used;
        }
    }

    fn member(&mut self, member: &mut Member) {
        self.layer(&mut member.layer);
        if let (Some(dots), Layer::Call(call)) = (member.splice, &member.layer) {
            let reason = match &call.target {
                Target::Block { block, .. } if self.signatures[*block].has_forward => {
                    format!("`{}` has a `forward` of its own, so its members can't be spliced in", call.name)
                }
                Target::Layer { .. } | Target::Tied(_) => {
                    format!("`{}` is one layer, so there is nothing to splice in", call.name)
                }
                _ => return,
            };
            self.report.error(Place::from(dots).to(call.place), reason, "leave the dots out");
            member.layer = Layer::Unknown;
        }
    }

    fn layer(&mut self, layer: &mut Layer) {
        match layer {
            Layer::Call(call) => self.declared(call),
            Layer::List(members, _) => members.iter_mut().for_each(|member| self.member(member)),
            Layer::Repeat(member, count, _) => {
                self.number(count);
                self.member(member);
            }
            Layer::If(branches, _) => {
                for (condition, layer) in branches {
                    if let Some(condition) = condition {
                        self.number(condition);
                    }
                    self.layer(layer);
                }
            }
            Layer::Unknown => {}
        }
    }

    /// A layer or block where it is declared as a member.
    fn declared(&mut self, call: &mut Call) {
        if call.name.text == "tied" {
            self.tied(call);
        } else if let Some(definition) = layers::find(&call.name.text) {
            if let Some(slots) = self.match_definition(call, definition.arguments, 0) {
                call.target = Target::Layer { definition: crate::ast::LayerDefinition(definition), values: 0, slots };
            }
        } else if let Some(&block) = self.block_names.get(&call.name.text) {
            self.blocks_used[block] = true;
            if let Some(slots) = self.match_block(call, block, 0) {
                call.target = Target::Block { block, slots };
            }
        } else {
            self.unknown_layer(&call.name);
            // Under another spelling it takes the same arguments.
            match layers::DEFINITIONS.iter().find(|definition| suggest::same(definition.name, &call.name.text)) {
                Some(definition) => {
                    self.match_definition(call, definition.arguments, 0);
                }
                None => {
                    for argument in &mut call.arguments {
                        if !self.is_layer(&argument.value) {
                            self.number(&mut argument.value);
                        }
                    }
                }
            }
        }
    }

    /// Whether this is the name or the call of a layer or block, which is never a number.
    fn is_layer(&self, expr: &Expr) -> bool {
        let name = match &expr.kind {
            ExprKind::Name(name, _) => name,
            ExprKind::Call(call) => &call.name.text,
            _ => return false,
        };
        layers::find(name).is_some() || self.block_names.contains_key(name)
    }

    /// `tied(member)`.
    fn tied(&mut self, call: &mut Call) {
        let path = match &call.arguments[..] {
            [argument] if argument.name.is_none() => match &argument.value.kind {
                ExprKind::Name(text, _) => Some(vec![Name { text: text.clone(), span: argument.value.place.start }]),
                ExprKind::Path(path) => Some(path.clone()),
                ExprKind::Unknown => return,
                _ => None,
            },
            _ => None,
        };
        let Some(path) = path else {
            if let [Argument { name: None, value: Expr { kind: ExprKind::Int(_), place } }] = call.arguments[..] {
                let help = "name the member, `embed: linear(10)`, and write `tied(embed)`";
                self.report.error(place, "`tied` takes the name of a member, not its position", help);
                return;
            }
            let message = "`tied` takes the member whose weight it uses";
            self.report.error(
                call.place,
                message,
                "write `tied(embed)`, where `embed` is a member with a weight of two axes",
            );
            return;
        };
        if !self.members.contains_key(&path[0].text) {
            if !self.incomplete && !self.report.is_full() {
                let known = self.members.keys().map(String::as_str);
                let help = suggest::help(&path[0].text, known, "name a member of this network or block");
                self.report.error(&path[0], format!("unknown member `{}`", path[0]), help);
            }
            return;
        }
        call.target = Target::Tied(path);
    }

    /// Reports that no layer or block has this name.
    fn unknown_layer(&mut self, name: &Name) {
        self.unknown_seen = true;
        // Its help would not be shown.
        if self.report.is_full() {
            return;
        }
        if let Some(remedy) = suggest::not_yet(&name.text) {
            self.report.error(name, format!("`{name}` is not yet in this version"), remedy);
            return;
        }
        if name.text == self.network {
            let message = format!("`{name}` is the network itself, which can't be a layer of its own");
            self.report.error(name, message, "for a part that repeats, declare a `block`");
            return;
        }
        let layers = layers::DEFINITIONS.iter().map(|d| d.name);
        // A block that is nearly what was written is not unused as well.
        if let Some(block) = suggest::nearest(&name.text, self.block_names.keys().map(String::as_str)) {
            self.blocks_used[self.block_names[block]] = true;
        }
        let known = layers.chain(self.block_names.keys().map(String::as_str));
        let otherwise = format!(
            "layers have PyTorch's names in snake case; for one of your own, declare `block {name}(..) {{ .. }}`"
        );
        let help = suggest::help(&name.text, known, &otherwise);
        self.report.error(name, format!("unknown layer `{name}`"), help);
    }
}
