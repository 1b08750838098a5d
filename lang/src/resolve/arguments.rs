//! Which argument of a call is which of its signature: positional ones first, then named ones.

use plimsoll_plan::arguments::{self, Definition, Kind};
use plimsoll_plan::{losses, optimizers};

use super::Resolver;
use crate::ast::{Argument, Call, Expr, ExprKind, Name, Place, Reference, Settings, Slots, Target};
use crate::suggest;

/// What `#[train]` takes.
pub const TRAIN: &[&str] = &["batch", "optimizer", "loss", "accumulate", "clip_grad_norm"];

/// What `#[infer]` takes.
pub const INFER: &[&str] = &["batch"];

/// Arguments as PyTorch or others name them, and what is said here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("in_channels", "leave it out: input sizes are inferred"),
    ("in_features", "leave it out: input sizes are inferred"),
    ("num_features", "leave it out: input sizes are inferred"),
    ("num_channels", "leave it out: input sizes are inferred"),
    (
        "normalized_shape",
        "leave it out: input sizes are inferred; `axes` says how many of the last axes are normalized",
    ),
    ("num_parameters", "leave it out: input sizes are inferred"),
    ("input_size", "leave it out: input sizes are inferred"),
    ("inplace", "leave it out: the planner works in place wherever that is right"),
    ("device", "leave it out: the device is chosen when the trainer is made"),
    ("dtype", "leave it out: networks compute in f32"),
    ("padding_mode", "leave it out: padding is with zeros"),
    ("track_running_stats", "leave it out: running statistics are always kept"),
    ("return_indices", "leave it out"),
    ("reduction", "leave it out: losses are means over the batch"),
];

/// The same argument under PyTorch's name and ours.
const RENAMED: &[(&str, &str)] = &[
    ("kernel_size", "kernel"),
    ("filters", "out_channels"),
    ("channels", "out_channels"),
    ("features", "out_features"),
    ("units", "out_features"),
    ("num_groups", "groups"),
    ("probability", "p"),
    ("rate", "p"),
    ("dim", "axis"),
    ("dims", "axes"),
    ("start_dim", "start_axis"),
    ("learning_rate", "lr"),
    ("epsilon", "eps"),
    ("size", "shape"),
    ("size", "output_size"),
    ("batch_size", "batch"),
    ("optim", "optimizer"),
    ("criterion", "loss"),
    ("clip", "clip_grad_norm"),
    ("max_norm", "clip_grad_norm"),
    ("grad_accumulation", "accumulate"),
];

impl Resolver<'_> {
    /// The arguments of a layer, loss or optimizer, after the first `values`.
    pub(super) fn match_definition(
        &mut self,
        call: &mut Call,
        signature: &'static [arguments::Argument],
        values: usize,
    ) -> Option<Slots> {
        let names: Vec<&str> = signature.iter().map(|a| a.name).collect();
        let by_position = signature.iter().take_while(|a| !a.by_name).count();
        let describe = || describe(signature);
        let slots = self.match_names(&call.name, &call.arguments, values, &names, by_position, describe);
        // A word such as `tanh` refers to nothing, and is not looked up.
        let is_word = |i: usize| {
            let slots = slots.as_ref()?;
            let slot = slots.iter().position(|slot| *slot == Some(i))?;
            Some(matches!(signature[slot].kind, Kind::Word(_)))
        };
        let words: Vec<bool> = (0..call.arguments.len()).map(|i| is_word(i).unwrap_or(false)).collect();
        for (argument, is_word) in call.arguments.iter_mut().zip(words).skip(values) {
            match &mut argument.value.kind {
                ExprKind::Name(_, reference) if is_word => *reference = Reference::Word,
                _ => self.value_of(argument, |name| names.contains(&name)),
            }
        }
        slots
    }

    /// The arguments of a block, after the first `values`.
    pub(super) fn match_block(&mut self, call: &mut Call, block: usize, values: usize) -> Option<Slots> {
        for argument in call.arguments.iter_mut().skip(values) {
            let parameters = &self.signatures[block].parameters;
            let known = argument.name.as_ref().is_none_or(|name| parameters.iter().any(|(p, _)| *p == name.text));
            self.value_of(argument, |_| known);
        }
        let signature = std::mem::take(&mut self.signatures[block].parameters);
        let names: Vec<&str> = signature.iter().map(|(name, _)| name.as_str()).collect();
        let mut slots = None;
        if self.signatures[block].complete {
            let describe = || {
                let shown =
                    signature.iter().map(
                        |(name, has_default)| {
                            if *has_default { format!("`{name} = ..`") } else { format!("`{name}`") }
                        },
                    );
                shown.collect::<Vec<_>>().join(", ")
            };
            slots = self.match_names(&call.name, &call.arguments, values, &names, names.len(), describe);
            let missing = slots.as_ref().and_then(|slots| {
                slots.iter().zip(&signature).find(|(slot, (_, has_default))| slot.is_none() && !has_default)
            });
            if let Some((_, (name, _))) = missing {
                let message = format!("`{name}` is missing");
                let help = format!("block `{}` takes {}", call.name, describe());
                self.report.error(call.place, message, help);
                slots = None;
            }
        }
        self.signatures[block].parameters = signature;
        slots
    }

    /// The value of an argument. A layer that is given to an argument that does not exist is one mistake, not two.
    fn value_of(&mut self, argument: &mut Argument, exists: impl Fn(&str) -> bool) {
        let unknown = argument.name.as_ref().is_some_and(|name| !exists(&name.text));
        if !(unknown && self.is_layer(&argument.value)) {
            self.number(&mut argument.value);
        }
    }

    /// Which argument is which, of which the first `by_position` need no name. Reports those that are none, or given twice.
    fn match_names(
        &mut self,
        callee: &Name,
        arguments: &[Argument],
        values: usize,
        names: &[&str],
        by_position: usize,
        describe: impl Fn() -> String,
    ) -> Option<Slots> {
        let mut slots: Slots = vec![None; names.len()];
        let mut all_well = true;
        let mut named = false;
        for (i, argument) in arguments.iter().enumerate().skip(values) {
            let slot = match &argument.name {
                None if named => {
                    let message = "an argument by position follows one by name";
                    let help = format!("name it; `{callee}` takes {}", describe());
                    self.report.error(argument.value.place, message, help);
                    all_well = false;
                    continue;
                }
                None if i - values < by_position => i - values,
                None => {
                    let most = match names.len() {
                        0 => "no arguments".to_string(),
                        1 => "one argument".to_string(),
                        n => format!("at most {n} arguments"),
                    };
                    // In PyTorch's order, sizes of the input come first.
                    if let Some(next) = names.get(by_position) {
                        let most = match by_position {
                            0 => "no argument".to_string(),
                            1 => "one argument".to_string(),
                            n => format!("{n} arguments"),
                        };
                        let help = format!(
                            "input sizes are inferred and never given; name what follows: `{next} = ..`; it takes {}",
                            describe()
                        );
                        self.report.error(argument.place(), format!("`{callee}` takes {most} by position"), help);
                        return None;
                    }
                    let help = match names.len() {
                        0 => "leave it out; input sizes are inferred".to_string(),
                        _ => format!("it takes {}; input sizes are inferred", describe()),
                    };
                    self.report.error(argument.place(), format!("`{callee}` takes {most}"), help);
                    return None;
                }
                Some(name) => {
                    named = true;
                    match names.iter().position(|n| *n == name.text) {
                        Some(slot) => slot,
                        None => {
                            self.unknown_argument(callee, name, names, &describe);
                            all_well = false;
                            continue;
                        }
                    }
                }
            };
            if slots[slot].is_some() {
                let message = format!("`{}` is given twice", names[slot]);
                let by_position = slot > 0 && slots[slot].is_some_and(|i| arguments[i].name.is_none());
                let help = match by_position {
                    true => format!(
                        "it is the argument in position {} already; `{callee}` takes {}; input sizes are inferred and never given",
                        slot + 1,
                        describe()
                    ),
                    false => "keep one of them".to_string(),
                };
                self.report.error(argument.place(), message, help);
                all_well = false;
            }
            slots[slot] = Some(i);
        }
        all_well.then_some(slots)
    }

    fn unknown_argument(&mut self, callee: &Name, name: &Name, names: &[&str], describe: impl Fn() -> String) {
        // Its help would not be shown.
        if self.report.is_full() {
            return;
        }
        let renamed = RENAMED.iter().find(|(theirs, ours)| *theirs == name.text && names.contains(ours));
        let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == name.text);
        let help = match (renamed, elsewhere) {
            (Some((_, ours)), _) => format!("did you mean `{ours}`?"),
            (None, Some((_, remedy))) => (*remedy).to_string(),
            (None, None) if names.is_empty() => format!("`{callee}` takes no arguments"),
            (None, None) if name.text == "momentum" && callee.text.starts_with("adam") => {
                format!("`{callee}` has `betas` instead: `betas = (0.9, 0.999)`")
            }
            (None, None) => {
                suggest::help(&name.text, names.iter().copied(), &format!("`{callee}` takes {}", describe()))
            }
        };
        self.report.error(name, format!("`{callee}` has no argument `{name}`"), help);
    }

    /// `#[train(...)]` or `#[infer(...)]`.
    pub(super) fn settings(&mut self, settings: &mut Settings) {
        let training = settings.name.text == "train";
        let names = if training { TRAIN } else { INFER };
        let mut seen: Vec<&str> = Vec::new();
        let mut by_position = false;
        let optimizer = settings.given("optimizer").and_then(|value| match &value.kind {
            ExprKind::Name(name, _) => Some(name.clone()),
            ExprKind::Call(call) => Some(call.name.text.clone()),
            _ => None,
        });
        for argument in &mut settings.arguments {
            let Some(name) = &argument.name else {
                let example = if training { "batch = .., optimizer = .., loss = .." } else { "batch = .." };
                let message = format!("`#[{}]` takes arguments by name", settings.name);
                if !by_position {
                    self.report.error(
                        argument.value.place,
                        message,
                        format!("write `#[{}({example})]`", settings.name),
                    );
                }
                by_position = true;
                continue;
            };
            let Some(known) = names.iter().find(|n| **n == name.text).copied() else {
                let help = match name.text.as_str() {
                    "lr" | "learning_rate" | "weight_decay" | "momentum" | "betas" if training => {
                        let optimizer = optimizer.as_deref().unwrap_or("sgd");
                        format!("give it to the optimizer: `optimizer = {optimizer}({name} = ..)`")
                    }
                    "optimizer" | "loss" | "lr" => "it belongs to `#[train]`: leave it out".to_string(),
                    "epochs" | "steps" | "shuffle" => {
                        "leave it out: the loop over the data is your program's".to_string()
                    }
                    "recompute" => "it belongs to the budget: `#[budget(.., recompute)]`".to_string(),
                    text => match RENAMED.iter().find(|(theirs, ours)| *theirs == text && names.contains(ours)) {
                        Some((_, ours)) => format!("did you mean `{ours}`?"),
                        None => {
                            suggest::help(text, names.iter().copied(), &format!("it takes `{}`", names.join("`, `")))
                        }
                    },
                };
                self.report.error(name, format!("`#[{}]` has no argument `{name}`", settings.name), help);
                continue;
            };
            if seen.contains(&known) {
                self.report.error(argument.place(), format!("`{known}` is given twice"), "keep one of them");
                continue;
            }
            seen.push(known);
            match known {
                "optimizer" => self.by_name(&mut argument.value, "optimizer", optimizers::DEFINITIONS),
                "loss" => self.by_name(&mut argument.value, "loss", losses::DEFINITIONS),
                _ => self.number(&mut argument.value),
            }
        }
        if training {
            for (name, example) in [
                ("batch", "batch = 32"),
                ("optimizer", "optimizer = adam(lr = 1e-3)"),
                ("loss", "loss = cross_entropy"),
            ] {
                let meant = |argument: &Argument| {
                    let text = argument.name.as_ref().map_or("", |n| n.text.as_str());
                    suggest::nearest(text, TRAIN.iter().copied()) == Some(name)
                        || RENAMED.iter().any(|(theirs, ours)| *theirs == text && *ours == name)
                };
                if !seen.contains(&name) && !by_position && !settings.arguments.iter().any(meant) {
                    let message = format!("`#[train]` needs `{name}`");
                    self.report.error(&settings.name, message, format!("add `{example}`"));
                }
            }
        } else if !seen.contains(&"batch") && settings.arguments.is_empty() {
            self.report.error(settings.place, "`#[infer]` needs `batch`", "write `#[infer(batch = 1)]`");
        }
    }

    /// `adam` or `adam(lr = 1e-3)`.
    fn by_name<T>(&mut self, value: &mut Expr, what: &str, definitions: &[&'static Definition<T>]) {
        let names = || definitions.iter().map(|d| d.name);
        let list = names().collect::<Vec<_>>().join("`, `");
        if let ExprKind::Name(text, _) = &value.kind {
            let name = Name { text: text.clone(), span: value.place.start };
            value.kind =
                ExprKind::Call(Call { name, arguments: Vec::new(), place: value.place, target: Target::Unknown });
        }
        let call = match &mut value.kind {
            ExprKind::Call(call) => call,
            ExprKind::Unknown => return,
            _ => {
                let message = format!("expected the name of {} {what}", if what == "loss" { "a" } else { "an" });
                self.report.error(value.place, message, format!("write one of `{list}`"));
                value.kind = ExprKind::Unknown;
                return;
            }
        };
        let Some(definition) = definitions.iter().find(|d| d.name == call.name.text) else {
            let trimmed = call.name.text.strip_suffix("Loss").or(call.name.text.strip_suffix("_loss"));
            let otherwise = format!("the {} are `{list}`", if what == "loss" { "losses" } else { "optimizers" });
            let help = match trimmed.and_then(|trimmed| suggest::nearest(trimmed, names())) {
                Some(name) => format!("did you mean `{name}`?"),
                None => suggest::help(&call.name.text, names(), &otherwise),
            };
            self.report.error(&call.name, format!("unknown {what} `{}`", call.name), help);
            value.kind = ExprKind::Unknown;
            return;
        };
        match self.match_definition(call, definition.arguments, 0) {
            // What is given is evaluated by the definition of that name, which need not be kept.
            Some(slots) => call.target = Target::Setting(slots),
            None => value.kind = ExprKind::Unknown,
        }
    }
}

/// A signature as a message shows it.
pub fn describe(signature: &[arguments::Argument]) -> String {
    if signature.is_empty() {
        return "no arguments".to_string();
    }
    let shown = signature.iter().map(|a| match a.default {
        arguments::Default::Required => format!("`{}`", a.name),
        arguments::Default::Int(v) => format!("`{} = {v}`", a.name),
        arguments::Default::Float(v) => format!("`{} = {v:?}`", a.name),
        arguments::Default::Floats(v, w) => format!("`{} = ({v:?}, {w:?})`", a.name),
        arguments::Default::Bool(v) => format!("`{} = {v}`", a.name),
        arguments::Default::Word(v) => format!("`{} = {v}`", a.name),
        arguments::Default::SameAs(other) => format!("`{} = {other}`", a.name),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The place of a signature's argument in a call: that argument where it is given, else the call's name.
pub fn place_of(call: &Call, slots: &Slots, slot: Option<usize>) -> Place {
    let given = slot.and_then(|slot| slots.get(slot).copied().flatten());
    match given.and_then(|i| call.arguments.get(i)) {
        Some(argument) => argument.value.place,
        None => Place::from(&call.name),
    }
}
