//! Names in expressions of numbers, and in expressions of the network's values.

use plimsoll_plan::layers;

use super::Resolver;
use crate::ast::{Call, Expr, ExprKind, LayerDefinition, Name, Place, Reference, Target};
use crate::suggest;

/// What an expression stands for, as far as its text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// A tensor that flows through the network.
    Value,
    /// A number, truth value, list or word.
    Number,
    /// A mistake that was reported.
    Unknown,
}

/// What other languages write before the call of a layer.
#[derive(Clone, Copy)]
enum Prefix {
    /// `self`.
    Itself,
    /// PyTorch's modules.
    Module,
}

impl Prefix {
    fn find(name: &str) -> Option<Prefix> {
        match name {
            "self" => Some(Prefix::Itself),
            "F" | "nn" | "torch" => Some(Prefix::Module),
            _ => None,
        }
    }
}

impl Resolver<'_> {
    /// An expression outside of `forward`, or an argument of a layer: consts and parameters only, and within `forward`
    /// numbers that a `let` bound.
    pub(super) fn number(&mut self, expr: &mut Expr) {
        let was_unknown = matches!(expr.kind, ExprKind::Unknown);
        let sort = self.expression(expr);
        if sort == Sort::Value && !was_unknown {
            let help = "layer arguments are numbers over literals, consts and parameters of the block";
            self.report.error(expr.place, "expected a number, found a value of the network", help);
            expr.kind = ExprKind::Unknown;
        }
    }

    /// Any expression.
    pub(super) fn expression(&mut self, expr: &mut Expr) -> Sort {
        self.without_prefix(expr);
        match &mut expr.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) => Sort::Number,
            ExprKind::Unknown => Sort::Unknown,
            ExprKind::Name(text, reference) => {
                let (found, sort) = self.name(text, expr.place);
                *reference = found;
                sort
            }
            ExprKind::Path(path) => {
                let receiver = &path[0];
                let message = format!("`{receiver}.{}` is not called", path[1]);
                self.report.error(expr.place, message, format!("write `{receiver}.{}()`", path[1]));
                self.unknown_seen = true;
                expr.kind = ExprKind::Unknown;
                Sort::Unknown
            }
            ExprKind::List(items) => {
                items.iter_mut().for_each(|item| self.number(item));
                Sort::Number
            }
            ExprKind::Negative(inner) | ExprKind::Not(inner) => self.expression(inner),
            ExprKind::Operations(first, rest) => {
                let mut sort = self.expression(first);
                for (_, _, operand) in rest {
                    sort = match (sort, self.expression(operand)) {
                        (Sort::Unknown, _) | (_, Sort::Unknown) => Sort::Unknown,
                        (Sort::Value, _) | (_, Sort::Value) => Sort::Value,
                        (Sort::Number, Sort::Number) => Sort::Number,
                    };
                }
                sort
            }
            ExprKind::Call(call) => self.call(call, None),
            ExprKind::Chain(receiver, calls) => {
                let mut sort = self.expression(receiver);
                for call in calls {
                    sort = self.call(call, Some(sort));
                }
                sort
            }
        }
    }

    /// `self.fc1(x)` and `F.relu(x)` as the calls that they are meant to be, after reporting the prefix.
    fn without_prefix(&mut self, expr: &mut Expr) {
        let ExprKind::Chain(receiver, calls) = &mut expr.kind else { return };
        let ExprKind::Name(name, _) = &receiver.kind else { return };
        let bound = self.locals.iter().any(|local| local.name == *name) || self.members.contains_key(name);
        if !self.in_forward || bound || Prefix::find(name).is_none() || calls[0].arguments.is_empty() {
            return;
        }
        self.unknown_name(&name.clone(), receiver.place);
        let first = calls.remove(0);
        **receiver = Expr { place: first.place, kind: ExprKind::Call(first) };
        if calls.is_empty() {
            expr.kind = std::mem::replace(&mut receiver.kind, ExprKind::Unknown);
        }
    }

    /// A name on its own.
    fn name(&mut self, text: &str, place: Place) -> (Reference, Sort) {
        if self.in_forward {
            if let Some(i) = self.locals.iter().rposition(|local| local.name == *text) {
                self.locals[i].used = true;
                return (Reference::Local(i), self.locals[i].sort);
            }
            if let Some(&i) = self.members.get(text) {
                self.members_used[i] = true;
                // What was to be given to it may seem unused.
                self.unknown_seen |= !self.values[i];
                return (Reference::Member(i), Sort::Value);
            }
        }
        if let Some(&i) = self.parameters.get(text) {
            return (Reference::Parameter(i), Sort::Number);
        }
        if let Some(&i) = self.consts.get(text) {
            return (Reference::Const(i), Sort::Number);
        }
        self.unknown_name(text, place);
        (Reference::Unknown, Sort::Unknown)
    }

    fn unknown_name(&mut self, text: &str, place: Place) {
        self.unknown_seen = true;
        // Its help would not be shown.
        if self.report.is_full() {
            return;
        }
        if self.in_forward && layers::find(text).is_some() {
            let message = format!("`{text}` is a layer, and needs a value");
            self.report.error(place, message, format!("write `{text}(x)` or `x.{text}()`"));
            return;
        }
        if let Some(prefix) = Prefix::find(text).filter(|_| self.in_forward) {
            if self.outside.insert(text.to_string()) && !self.incomplete {
                let (message, help) = match prefix {
                    Prefix::Itself => {
                        ("`self` is not needed".to_string(), "members are known by their names: `fc1(x)` or `x.fc1()`")
                    }
                    Prefix::Module => (format!("layers need no prefix `{text}`"), "write `relu(x)` or `x.relu()`"),
                };
                self.report.error(place, message, help);
            }
            return;
        }
        if let Some(help) = suggest::word(text) {
            self.report.error(place, format!("unknown name `{text}`"), help);
            return;
        }
        let near = self.nearest_in_scope(text);
        let network = &self.network;
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            // Reported where it was declared.
            None if self.incomplete => return,
            None if self.in_forward => {
                format!("bind it with `let {text} = ..;`, or take it as an input: `fn forward(x, {text})`")
            }
            // Declaring it once helps everywhere.
            None if !self.outside.insert(text.to_string()) => return,
            None if self.parameter_elsewhere(text).is_some() => {
                let (other, own) = (self.parameter_elsewhere(text).unwrap_or(""), self.block.as_deref().unwrap_or(""));
                match own {
                    "" => {
                        format!("it is a parameter of block `{other}`, known there only: declare `const {text} = ..;`")
                    }
                    own => {
                        format!("it is a parameter of block `{other}`, known there only: declare `block {own}({text})`")
                    }
                }
            }
            None => format!(
                "a macro cannot see Rust constants outside of it: declare `const {text} = ..;` in the network, which exports \
                 it as `{network}::{text}`"
            ),
        };
        self.report.error(place, format!("unknown name `{text}`"), help);
    }

    /// The block that has such a parameter.
    fn parameter_elsewhere(&self, text: &str) -> Option<&str> {
        let mut blocks = self.block_names.iter();
        let found = blocks.find(|(_, block)| self.signatures[**block].parameters.iter().any(|(name, _)| name == text));
        found.map(|(name, _)| name.as_str())
    }

    /// The name in scope that `text` was probably meant to be. It counts as used.
    fn nearest_in_scope(&mut self, text: &str) -> Option<String> {
        let locals = self.locals.iter().map(|local| local.name.as_str());
        let members = self.members.keys().map(String::as_str);
        let inner = if self.in_forward { suggest::nearest(text, locals.chain(members)) } else { None };
        let inner = inner.map(str::to_string);
        if let Some(near) = &inner {
            for local in self.locals.iter_mut().filter(|local| local.name == *near) {
                local.used = true;
            }
            if let Some(&i) = self.members.get(near) {
                self.members_used[i] = true;
            }
        }
        let outer = self.parameters.keys().chain(self.consts.keys()).map(String::as_str);
        inner.or_else(|| suggest::nearest(text, outer).map(str::to_string))
    }

    /// `f(x, a)`, or `.f(a)` with what it is called on.
    fn call(&mut self, call: &mut Call, receiver: Option<Sort>) -> Sort {
        if self.in_forward
            && let Some(&i) = self.members.get(&call.name.text)
        {
            self.members_used[i] = true;
            call.target = Target::Member(i);
            return self.member_call(call, receiver);
        }
        match call.name.text.as_str() {
            "min" | "max" => {
                call.target = if call.name.text == "min" { Target::Min } else { Target::Max };
                call.arguments.iter_mut().for_each(|argument| self.number(&mut argument.value));
                let given = call.arguments.len() + usize::from(receiver.is_some());
                let named = call.arguments.iter().any(|argument| argument.name.is_some());
                if given != 2 || named || receiver == Some(Sort::Value) {
                    let message = format!("`{}` takes two numbers", call.name);
                    self.report.error(call.place, message, format!("write `{}(a, b)`", call.name));
                    call.target = Target::Unknown;
                    return Sort::Unknown;
                }
                Sort::Number
            }
            _ if self.in_forward => self.direct_call(call, receiver),
            _ => {
                let message = format!("unknown function `{}`", call.name);
                self.report.error(&call.name, message, "the functions of numbers are `min(a, b)` and `max(a, b)`");
                call.arguments.iter_mut().for_each(|argument| self.number(&mut argument.value));
                Sort::Unknown
            }
        }
    }

    /// A member applied to values.
    fn member_call(&mut self, call: &mut Call, receiver: Option<Sort>) -> Sort {
        let mut sort = Sort::Value;
        if receiver == Some(Sort::Number) {
            let message = format!("the member `{}` is applied to a number", call.name);
            self.report.error(&call.name, message, "members are applied to values of the network");
            call.target = Target::Unknown;
            sort = Sort::Unknown;
        }
        // What was to be given to it may seem unused.
        self.unknown_seen |= call.arguments.is_empty() && receiver.is_none();
        for argument in &mut call.arguments {
            let found = self.expression(&mut argument.value);
            if found == Sort::Number || argument.name.is_some() {
                let message = format!("the member `{}` is applied to values only", call.name);
                let help = "its other arguments stand where it is declared";
                self.report.error(argument.place(), message, help);
                call.target = Target::Unknown;
                sort = Sort::Unknown;
            }
        }
        sort
    }

    /// A layer without parameters, applied right in `forward`.
    fn direct_call(&mut self, call: &mut Call, receiver: Option<Sort>) -> Sort {
        let name = call.name.text.clone();
        let is_block = self.block_names.contains_key(&name);
        let definition = layers::find(&name);
        if name == "tied" || is_block || definition.is_some_and(|d| d.has_parameters) {
            if let Some(&block) = self.block_names.get(&name) {
                self.blocks_used[block] = true;
            }
            let what = if is_block { "is a block" } else { "has parameters" };
            let suggested = Self::member_name(&name);
            self.report.error(
                &call.name,
                format!("`{name}` {what}, and so must be declared as a member"),
                format!("declare `{suggested}: {name}(..)` above `fn forward`, and call `{suggested}(x)` here"),
            );
            self.unknown_seen = true;
            return Sort::Unknown;
        }
        let Some(definition) = definition else {
            call.arguments.iter_mut().for_each(|argument| {
                self.expression(&mut argument.value);
            });
            self.unknown_callee(&call.name);
            return Sort::Unknown;
        };
        // The first arguments are the values; which of the others are values only matters where there may be many.
        let received = usize::from(receiver.is_some());
        let mut values = 0;
        let mut all_known = receiver != Some(Sort::Unknown);
        if receiver == Some(Sort::Number) {
            let message = format!("`{name}` is applied to a number");
            self.report.error(&call.name, message, "layers are applied to values of the network");
            return Sort::Unknown;
        }
        for argument in &mut call.arguments {
            if received + values >= *definition.inputs.end() || argument.name.is_some() {
                break;
            }
            match self.expression(&mut argument.value) {
                Sort::Number => {
                    // Already resolved, and an argument of the layer.
                    break;
                }
                Sort::Unknown => all_known = false,
                Sort::Value => {}
            }
            values += 1;
        }
        if received + values < *definition.inputs.start() {
            let needed = definition.inputs.start();
            let message = match (needed, received + values) {
                (1, _) => format!("`{name}` is applied to no value"),
                (needed, given) => format!("`{name}` needs {needed} values, but is given {given}"),
            };
            self.report.error(&call.name, message, format!("write `{name}(x)` or `x.{name}()`"));
            return Sort::Unknown;
        }
        match self.match_definition(call, definition.arguments, values) {
            Some(slots) if all_known => {
                call.target = Target::Layer { definition: LayerDefinition(definition), values, slots };
                Sort::Value
            }
            _ => Sort::Unknown,
        }
    }

    /// What a member of that layer might be called.
    fn member_name(layer: &str) -> &'static str {
        match layer {
            _ if layer.starts_with("conv") => "conv1",
            _ if layer.contains("norm") => "norm1",
            "linear" | "tied" => "fc1",
            _ => "part1",
        }
    }

    fn unknown_callee(&mut self, name: &Name) {
        self.unknown_seen = true;
        // Its help would not be shown.
        if self.report.is_full() {
            return;
        }
        if let Some(remedy) = suggest::not_yet(&name.text) {
            self.report.error(name, format!("`{name}` is not yet in this version"), remedy);
            return;
        }
        let members = suggest::nearest(&name.text, self.members.keys().map(String::as_str)).map(str::to_string);
        if let Some(near) = &members {
            self.members_used[self.members[near]] = true;
        }
        let help = match members {
            Some(near) => format!("did you mean `{near}`?"),
            // Reported where it was declared.
            None if self.incomplete => return,
            None => suggest::help(
                &name.text,
                layers::DEFINITIONS.iter().filter(|d| !d.has_parameters).map(|d| d.name),
                &format!(
                    "declare a member `{name}` above `fn forward`, or call a layer without parameters, such as `relu`"
                ),
            ),
        };
        self.report.error(name, format!("unknown member or layer `{name}`"), help);
    }
}
