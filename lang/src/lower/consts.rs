//! The network's consts, which may use each other in any order.

use plimsoll_plan::arguments::Value;

use crate::ast::{Const, Expr, ExprKind, Reference};
use crate::evaluate::{Scope, evaluate};
use crate::report::Report;

/// The value of each const; `None` after a mistake.
pub fn evaluate_consts(consts: &[Const], report: &mut Report) -> Vec<Option<Value>> {
    let needed: Vec<Vec<usize>> = consts
        .iter()
        .map(|item| {
            let mut found = Vec::new();
            item.value.iter().for_each(|value| references(value, &mut found));
            found
        })
        .collect();
    let mut values = vec![None; consts.len()];
    let mut state = vec![State::New; consts.len()];
    // What is needed comes first. Not recursive: a thousand consts may each use the next.
    for start in 0..consts.len() {
        let mut path = vec![start];
        while let Some(&i) = path.last() {
            match state[i] {
                State::New => {
                    state[i] = State::OnPath;
                    for &inner in &needed[i] {
                        match state[inner] {
                            State::New => path.push(inner),
                            State::OnPath => cycle(consts, inner, report),
                            State::Done => {}
                        }
                    }
                }
                State::OnPath => {
                    path.pop();
                    state[i] = State::Done;
                    let scope = Scope { consts: &values, parameters: &[], locals: &[] };
                    values[i] = consts[i].value.as_ref().and_then(|value| evaluate(value, scope, report));
                }
                State::Done => {
                    path.pop();
                }
            }
        }
    }
    values
}

fn cycle(consts: &[Const], i: usize, report: &mut Report) {
    let name = &consts[i].name;
    if report.first_at(name) {
        let help = "give one of the consts on the way a value of its own";
        report.error(name, format!("`{name}` is defined by itself"), help);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    OnPath,
    Done,
}

/// The consts that an expression uses.
fn references(expr: &Expr, found: &mut Vec<usize>) {
    match &expr.kind {
        ExprKind::Name(_, Reference::Const(i)) => found.push(*i),
        ExprKind::List(items) => items.iter().for_each(|item| references(item, found)),
        ExprKind::Call(call) => call.arguments.iter().for_each(|argument| references(&argument.value, found)),
        ExprKind::Chain(receiver, calls) => {
            references(receiver, found);
            calls.iter().flat_map(|call| &call.arguments).for_each(|argument| references(&argument.value, found));
        }
        ExprKind::Negative(inner) | ExprKind::Not(inner) => references(inner, found),
        ExprKind::Operations(first, rest) => {
            references(first, found);
            rest.iter().for_each(|(_, _, operand)| references(operand, found));
        }
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Name(..)
        | ExprKind::Path(_)
        | ExprKind::Unknown => {}
    }
}
