//! Expressions to numbers, with checked arithmetic: what does not fit, or divides by zero, is an error at its operator.

use plimsoll_plan::arguments::Value;

use crate::ast::{Call, Expr, ExprKind, Operator, Place, Reference, Target};
use crate::limits;
use crate::report::Report;

/// What the names in an expression stand for. `None`: a mistake that was reported.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// The network's consts.
    pub consts: &'s [Option<Value>],
    /// The arguments of the block at hand.
    pub parameters: &'s [Option<Value>],
    /// The numbers that `let`s bound; `None` also where it was a value of the network.
    pub locals: &'s [Option<Value>],
}

/// The value of an expression, or `None` after a mistake, which is reported unless it was already.
pub fn evaluate(expr: &Expr, scope: Scope, report: &mut Report) -> Option<Value> {
    if !report.work(1, expr.place) {
        return None;
    }
    match &expr.kind {
        ExprKind::Int(v) => Some(Value::Int(*v)),
        ExprKind::Float(v) => Some(Value::Float(*v)),
        ExprKind::Bool(v) => Some(Value::Bool(*v)),
        ExprKind::Name(text, reference) => match *reference {
            Reference::Const(i) => copied(scope.consts.get(i)?.as_ref()?, expr, report),
            Reference::Parameter(i) => copied(scope.parameters.get(i)?.as_ref()?, expr, report),
            Reference::Local(i) => copied(scope.locals.get(i)?.as_ref()?, expr, report),
            Reference::Word => Some(Value::Word(text.clone())),
            Reference::Member(_) | Reference::Unknown => None,
        },
        ExprKind::List(items) => {
            if items.len() > limits::LIST {
                let message = format!("a list of {} elements", items.len());
                let help = format!("lists have at most {} elements", limits::LIST);
                return mistake(report, expr, expr.place, message, help);
            }
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                let value = evaluate(item, scope, report)?;
                if let Value::List(_) = value {
                    let help = "no argument takes one: write numbers only";
                    return mistake(report, item, item.place, "a list inside a list".to_string(), help);
                }
                values.push(value);
            }
            Some(Value::List(values))
        }
        ExprKind::Call(call) => function(call, None, scope, report),
        ExprKind::Chain(receiver, calls) => {
            let mut value = evaluate(receiver, scope, report)?;
            for call in calls {
                value = function(call, Some(value), scope, report)?;
            }
            Some(value)
        }
        ExprKind::Negative(inner) => match evaluate(inner, scope, report)? {
            // i64::MIN can't be written, so that every integer has a negative.
            Value::Int(v) => Some(Value::Int(v.checked_neg()?)),
            Value::Float(v) => Some(Value::Float(-v)),
            other => mistake(
                report,
                expr,
                expr.place.start,
                format!("`-` before {}", shown(&other)),
                "numbers have signs; `!` is for truth values",
            ),
        },
        ExprKind::Not(inner) => match evaluate(inner, scope, report)? {
            Value::Bool(v) => Some(Value::Bool(!v)),
            other => mistake(
                report,
                expr,
                expr.place.start,
                format!("`!` before {}", shown(&other)),
                "`!` is for truth values: compare first, as in `!(a == b)`",
            ),
        },
        ExprKind::Operations(first, rest) => {
            let mut left = evaluate(first, scope, report)?;
            for (operator, place, operand) in rest {
                // As in Rust, what decides already is not looked at further.
                match (operator, &left) {
                    (Operator::And, Value::Bool(false)) | (Operator::Or, Value::Bool(true)) => continue,
                    _ => {}
                }
                let right = evaluate(operand, scope, report)?;
                left = binary(*operator, *place, operand, left, right, report)?;
            }
            Some(left)
        }
        ExprKind::Path(_) | ExprKind::Unknown => None,
    }
}

/// What a name stands for. A list is copied, and each of its elements is a step.
fn copied(value: &Value, expr: &Expr, report: &mut Report) -> Option<Value> {
    match value {
        Value::List(values) if !report.work(values.len(), expr.place) => None,
        value => Some(value.clone()),
    }
}

/// A value as a message shows it: the start of a long list.
pub fn shown(value: &Value) -> String {
    limits::shortened(&value.to_string(), limits::SHOWN)
}

/// `min(a, b)` and `max(a, b)`.
pub fn function(call: &Call, receiver: Option<Value>, scope: Scope, report: &mut Report) -> Option<Value> {
    let is_min = match call.target {
        Target::Min => true,
        Target::Max => false,
        _ => return None,
    };
    let mut values = Vec::with_capacity(2);
    values.extend(receiver);
    for argument in &call.arguments {
        values.push(evaluate(&argument.value, scope, report)?);
    }
    match values[..] {
        [Value::Int(a), Value::Int(b)] => Some(Value::Int(if is_min { a.min(b) } else { a.max(b) })),
        [ref a, ref b] => match (float(a), float(b)) {
            (Some(a), Some(b)) => Some(Value::Float(if is_min { a.min(b) } else { a.max(b) })),
            _ => {
                let message = format!("`{}` of {} and {}", call.name, shown(a), shown(b));
                mistake(report, call, call.name.span, message, "it takes two numbers")
            }
        },
        _ => None,
    }
}

/// `left operator right`. `node` is what a mistake is remembered by.
pub fn binary(
    operator: Operator,
    place: Place,
    node: &Expr,
    left: Value,
    right: Value,
    report: &mut Report,
) -> Option<Value> {
    use Operator::*;
    match (operator, &left, &right) {
        (And, Value::Bool(a), Value::Bool(b)) => return Some(Value::Bool(*a && *b)),
        (Or, Value::Bool(a), Value::Bool(b)) => return Some(Value::Bool(*a || *b)),
        (Equal, Value::Bool(a), Value::Bool(b)) => return Some(Value::Bool(a == b)),
        (NotEqual, Value::Bool(a), Value::Bool(b)) => return Some(Value::Bool(a != b)),
        (And | Or, ..) => {
            let message = format!("`{}` between {} and {}", operator.text(), shown(&left), shown(&right));
            return mistake(report, node, place, message, "both sides must be true or false: compare numbers first");
        }
        _ => {}
    }
    if let (Value::Int(a), Value::Int(b)) = (&left, &right) {
        return integers(operator, place, node, *a, *b, report);
    }
    let (Some(a), Some(b)) = (float(&left), float(&right)) else {
        let message = format!("`{}` between {} and {}", operator.text(), shown(&left), shown(&right));
        return mistake(report, node, place, message, "both sides must be numbers");
    };
    let number = match operator {
        Equal => return Some(Value::Bool(a == b)),
        NotEqual => return Some(Value::Bool(a != b)),
        Less => return Some(Value::Bool(a < b)),
        LessOrEqual => return Some(Value::Bool(a <= b)),
        Greater => return Some(Value::Bool(a > b)),
        GreaterOrEqual => return Some(Value::Bool(a >= b)),
        Add => a + b,
        Subtract => a - b,
        Multiply => a * b,
        Divide => a / b,
        Remainder | And | Or => a % b,
    };
    if number.is_finite() {
        return Some(Value::Float(number));
    }
    let message = format!("`{a:?} {} {b:?}` is no finite number", operator.text());
    mistake(report, node, place, message, "change either side")
}

fn integers(operator: Operator, place: Place, node: &Expr, a: i64, b: i64, report: &mut Report) -> Option<Value> {
    use Operator::*;
    let number = match operator {
        Equal => return Some(Value::Bool(a == b)),
        NotEqual => return Some(Value::Bool(a != b)),
        Less => return Some(Value::Bool(a < b)),
        LessOrEqual => return Some(Value::Bool(a <= b)),
        Greater => return Some(Value::Bool(a > b)),
        GreaterOrEqual => return Some(Value::Bool(a >= b)),
        Divide | Remainder if b == 0 => {
            let message = format!("`{a} {} 0` divides by zero", operator.text());
            return mistake(report, node, place, message, "the right side must not be zero");
        }
        Add => a.checked_add(b),
        Subtract => a.checked_sub(b),
        Multiply => a.checked_mul(b),
        Divide => a.checked_div(b),
        Remainder | And | Or => a.checked_rem(b),
    };
    if let Some(number) = number {
        return Some(Value::Int(number));
    }
    let message = format!("`{a} {} {b}` overflows", operator.text());
    mistake(report, node, place, message, format!("the largest integer is {}", i64::MAX))
}

/// A number as a float.
pub fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(v) => Some(*v as f64),
        Value::Float(v) => Some(*v),
        _ => None,
    }
}

/// Reports a mistake, unless one was at this node before.
fn mistake<T, N>(
    report: &mut Report,
    node: &N,
    place: impl Into<Place>,
    message: String,
    help: impl AsRef<str>,
) -> Option<T> {
    if report.first_at(node) {
        report.error(place, message, help);
    }
    None
}
