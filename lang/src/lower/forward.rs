//! Values through a `forward`.

use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::ValueId;
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};

use super::apply::Flow;
use super::instantiate::{Instance, Node};
use super::{Lowering, Site, join};
use crate::ast::{Call, Expr, ExprKind, Forward, Operator, Reference, Target};
use crate::evaluate::{Scope, binary, evaluate, float, function};

/// What an expression in `forward` stands for.
#[derive(Clone)]
enum Operand {
    Value(ValueId),
    Number(Value),
}

/// A `forward` at work: its inputs and `let`s so far. Of each, one of the two is known, or none after a mistake.
struct Frame<'f, 'a> {
    instance: &'f Instance<'a>,
    values: Vec<Flow>,
    numbers: Vec<Option<Value>>,
}

impl<'a> Lowering<'a, '_> {
    pub(super) fn forward(&mut self, instance: &Instance<'a>, forward: &'a Forward, inputs: &[Flow]) -> Flow {
        let mut frame = Frame { instance, values: inputs.to_vec(), numbers: vec![None; inputs.len()] };
        for statement in &forward.lets {
            let (value, number) = match self.operand(&statement.value, &frame) {
                Some(Operand::Value(value)) => (Some(value), None),
                Some(Operand::Number(number)) => (None, Some(number)),
                None => (None, None),
            };
            frame.values.push(value);
            frame.numbers.push(number);
        }
        match self.operand(forward.output.as_ref()?, &frame)? {
            Operand::Value(value) => Some(value),
            Operand::Number(_) => None,
        }
    }

    fn operand(&mut self, expr: &'a Expr, frame: &Frame<'_, 'a>) -> Option<Operand> {
        let site = Site::new(expr.place, expr);
        if !self.step(site) || !self.enter(site) {
            return None;
        }
        let operand = self.operand_within(expr, frame, site);
        self.leave();
        operand
    }

    fn operand_within(&mut self, expr: &'a Expr, frame: &Frame<'_, 'a>, site: Site<'a>) -> Option<Operand> {
        match &expr.kind {
            ExprKind::Name(_, Reference::Local(i)) => match (frame.values.get(*i)?, frame.numbers.get(*i)?) {
                (Some(value), _) => Some(Operand::Value(*value)),
                (None, Some(number)) => Some(Operand::Number(number.clone())),
                (None, None) => None,
            },
            ExprKind::Name(name, Reference::Member(i)) => {
                let node = frame.instance.members.get(*i)?;
                let is_value = matches!(node, Node::Layer(layer) if layer.definition.inputs.contains(&0));
                if !is_value {
                    if !matches!(node, Node::Unknown) && self.report.first_at(expr) {
                        let message = format!("the member `{name}` is a layer, not a value");
                        self.report.error(expr.place, message, format!("apply it: `x.{name}()`"));
                    }
                    return None;
                }
                self.apply(node, &[], site).map(Operand::Value)
            }
            ExprKind::Call(call) => self.called(call, None, frame),
            ExprKind::Chain(receiver, calls) => {
                let mut operand = self.operand(receiver, frame);
                for call in calls {
                    operand = self.called(call, Some(operand), frame);
                }
                operand
            }
            ExprKind::Negative(inner) => match self.operand(inner, frame)? {
                Operand::Value(value) => self.affine(-1.0, 0.0, value, site, frame),
                // The number is evaluated once more with its sign, for mistakes at the right token.
                Operand::Number(_) => self.number(expr, frame),
            },
            ExprKind::Operations(first, rest) => {
                let mut left = self.operand(first, frame);
                for (operator, place, operand) in rest {
                    let right = self.operand(operand, frame);
                    left = self.operation(*operator, Site::new(*place, operand), operand, left?, right?, frame);
                }
                left
            }
            ExprKind::Not(inner) => match self.operand(inner, frame)? {
                Operand::Value(_) => {
                    if self.report.first_at(expr) {
                        self.report.error(
                            expr.place.start,
                            "`!` before a value of the network",
                            "`!` is for truth values",
                        );
                    }
                    None
                }
                Operand::Number(_) => self.number(expr, frame),
            },
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::List(_)
            | ExprKind::Name(..)
            | ExprKind::Path(_)
            | ExprKind::Unknown => self.number(expr, frame),
        }
    }

    fn number(&mut self, expr: &Expr, frame: &Frame) -> Option<Operand> {
        let scope = Scope { consts: self.consts, parameters: &frame.instance.parameters, locals: &frame.numbers };
        evaluate(expr, scope, self.report).map(Operand::Number)
    }

    /// `f(x, a)`, or `.f(a)` with what it is called on.
    fn called(&mut self, call: &'a Call, receiver: Option<Option<Operand>>, frame: &Frame<'_, 'a>) -> Option<Operand> {
        let site = Site::call(call);
        match &call.target {
            Target::Member(i) => {
                let inputs = self.inputs(call, call.arguments.len(), receiver, frame);
                let node = frame.instance.members.get(*i)?;
                self.apply(node, &inputs, site).map(Operand::Value)
            }
            Target::Layer { definition, values, slots } => {
                let inputs = self.inputs(call, *values, receiver, frame);
                let path = join(&frame.instance.path, definition.name);
                let layer = self.build(call, &path, definition.0, slots, &frame.instance.parameters, &frame.numbers)?;
                let inputs = inputs.into_iter().collect::<Option<Vec<ValueId>>>()?;
                if !self.count_applied(site.place) {
                    return None;
                }
                match self.builder.apply(&path, layer, &inputs) {
                    Ok(value) => Some(Operand::Value(value)),
                    Err(error) => {
                        self.layer_error(call, definition.arguments, slots, &path, &error.message);
                        None
                    }
                }
            }
            Target::Min | Target::Max => {
                let receiver = match receiver {
                    Some(Some(Operand::Number(number))) => Some(number),
                    Some(_) => return None,
                    None => None,
                };
                let scope =
                    Scope { consts: self.consts, parameters: &frame.instance.parameters, locals: &frame.numbers };
                function(call, receiver, scope, self.report).map(Operand::Number)
            }
            _ => None,
        }
    }

    /// What a call is applied to: what it is called on, then its first arguments.
    fn inputs(
        &mut self,
        call: &'a Call,
        values: usize,
        receiver: Option<Option<Operand>>,
        frame: &Frame<'_, 'a>,
    ) -> Vec<Flow> {
        let value = |operand: Option<Operand>| match operand {
            Some(Operand::Value(value)) => Some(value),
            _ => None,
        };
        let mut inputs: Vec<Flow> = receiver.into_iter().map(value).collect();
        for argument in call.arguments.iter().take(values) {
            inputs.push(value(self.operand(&argument.value, frame)));
        }
        inputs
    }

    fn operation(
        &mut self,
        operator: Operator,
        site: Site,
        node: &Expr,
        left: Operand,
        right: Operand,
        frame: &Frame<'_, 'a>,
    ) -> Option<Operand> {
        let (value, mul, add) = match (left, right) {
            (Operand::Number(a), Operand::Number(b)) => {
                return binary(operator, site.place, node, a, b, self.report).map(Operand::Number);
            }
            (Operand::Value(a), Operand::Value(b)) => {
                let layer = match operator {
                    Operator::Add => Arithmetic::Add,
                    Operator::Subtract => Arithmetic::Sub,
                    Operator::Multiply => Arithmetic::Mul,
                    _ => return self.no_operation(operator, site),
                };
                let layer = Layer::Arithmetic(layer);
                let path = join(&frame.instance.path, layer.rule().kind());
                return self.applied(&path, layer, &[a, b], site);
            }
            (Operand::Value(value), Operand::Number(number)) => {
                let Some(number) = float(&number) else { return self.no_operation(operator, site) };
                match operator {
                    Operator::Add => (value, 1.0, number),
                    Operator::Subtract => (value, 1.0, -number),
                    Operator::Multiply => (value, number, 0.0),
                    Operator::Divide if number != 0.0 => (value, 1.0 / number, 0.0),
                    Operator::Divide => {
                        if self.report.first_at_address(site.node) {
                            let help = "the right side must not be zero";
                            self.report.error(site.place, "a value divided by zero", help);
                        }
                        return None;
                    }
                    _ => return self.no_operation(operator, site),
                }
            }
            (Operand::Number(number), Operand::Value(value)) => {
                let Some(number) = float(&number) else { return self.no_operation(operator, site) };
                match operator {
                    Operator::Add => (value, 1.0, number),
                    Operator::Subtract => (value, -1.0, number),
                    Operator::Multiply => (value, number, 0.0),
                    _ => return self.no_operation(operator, site),
                }
            }
        };
        self.affine(mul, add, value, site, frame)
    }

    fn affine(&mut self, mul: f64, add: f64, value: ValueId, site: Site, frame: &Frame) -> Option<Operand> {
        let layer = Layer::Affine(Affine { mul, add });
        let path = join(&frame.instance.path, layer.rule().kind());
        self.applied(&path, layer, &[value], site)
    }

    fn applied(&mut self, path: &str, layer: Layer, inputs: &[ValueId], site: Site) -> Option<Operand> {
        if !self.count_applied(site.place) {
            return None;
        }
        match self.builder.apply(path, layer, inputs) {
            Ok(value) => Some(Operand::Value(value)),
            Err(error) => {
                if self.report.first_at_address(site.node) {
                    let mut message = super::with_help(&error.message, "both sides must have shapes that match");
                    if let Some((block, _)) = path.rsplit_once('.') {
                        message.push_str(&format!("\nnote: this is in `{block}`"));
                    }
                    self.report.push(site.place, message);
                }
                None
            }
        }
    }

    fn no_operation(&mut self, operator: Operator, site: Site) -> Option<Operand> {
        if self.report.first_at_address(site.node) {
            let message = format!("`{}` does not work on values of the network", operator.text());
            self.report.error(site.place, message, "values have `+`, `-` and `*`, and `/` by a number");
        }
        None
    }
}
