//! How layers, losses and optimizers are called: named arguments with kinds and defaults, as data.
//!
//! Each layer file states its signature in a [`Definition`]; the language matches a call against it, and knows every
//! name to suggest. Values reach a layer's `build` function checked, so that it only picks them up.

use std::fmt;

/// The largest integer that an argument may be: that of `i32`, which keeps every product of two within 64 bits.
pub const MAX_INTEGER: i64 = i32::MAX as i64;

/// A value that an argument was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A tuple or a list.
    List(Vec<Value>),
    /// A bare word, such as `tanh` in `gelu(approximate = tanh)`.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(v) => write!(f, "{v}"),
            Value::Float(v) => write!(f, "{v:?}"),
            Value::Bool(v) => write!(f, "{v}"),
            Value::Word(v) => f.write_str(v),
            Value::List(values) => {
                f.write_str("(")?;
                for (i, v) in values.iter().enumerate() {
                    write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// What values an argument takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// An integer of at least 1.
    Size,
    /// An integer of at least 0.
    Count,
    /// An axis of the shape without batch; negative ones count from the end.
    Axis,
    /// One size for both axes, or a tuple of two.
    SizePair,
    /// One count for both axes, or a tuple of two.
    CountPair,
    /// A list of sizes, one of which may be -1: "whatever is left".
    Dims,
    /// A list of counts.
    Counts,
    /// `true` or `false`.
    Bool,
    /// A number; the bounds are inclusive.
    Float {
        /// The least that makes sense.
        min: f64,
        /// The most that makes sense.
        max: f64,
    },
    /// A tuple of two numbers between the bounds.
    FloatPair {
        /// The least that makes sense.
        min: f64,
        /// The most that makes sense.
        max: f64,
    },
    /// A list of numbers, or one.
    Floats,
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// Any number.
    pub const NUMBER: Kind = Kind::Float { min: f64::MIN, max: f64::MAX };
    /// A number of at least 0.
    pub const NON_NEGATIVE: Kind = Kind::Float { min: 0.0, max: f64::MAX };
    /// A number from 0 to 1.
    pub const FRACTION: Kind = Kind::Float { min: 0.0, max: 1.0 };
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Size => f.write_str("an integer of at least 1"),
            Kind::Count => f.write_str("an integer of at least 0"),
            Kind::Axis => f.write_str("an axis: an integer, negative to count from the end"),
            Kind::SizePair => f.write_str("an integer of at least 1, or a tuple of two, such as `(3, 5)`"),
            Kind::CountPair => f.write_str("an integer of at least 0, or a tuple of two, such as `(0, 1)`"),
            Kind::Dims => f.write_str("a list of sizes, such as `[16, -1]`"),
            Kind::Counts => f.write_str("a list of integers, such as `[1, 2, 0]`"),
            Kind::Bool => f.write_str("`true` or `false`"),
            Kind::Float { min, max } => bounds(f, "a number", *min, *max),
            Kind::FloatPair { min, max } => bounds(f, "a tuple of two numbers", *min, *max),
            Kind::Floats => f.write_str("a list of numbers, such as `[0.5, 0.5, 0.5]`"),
            Kind::Word(words) => {
                for (i, word) in words.iter().enumerate() {
                    write!(f, "{}`{word}`", if i > 0 { " or " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

fn bounds(f: &mut fmt::Formatter<'_>, what: &str, min: f64, max: f64) -> fmt::Result {
    match (min > f64::MIN, max < f64::MAX) {
        (true, true) => write!(f, "{what} from {min} to {max}"),
        (true, false) => write!(f, "{what} of at least {min}"),
        (false, true) => write!(f, "{what} of at most {max}"),
        (false, false) => f.write_str(what),
    }
}

/// What an argument is when it is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It may not be left out.
    Required,
    /// This integer.
    Int(i64),
    /// This number.
    Float(f64),
    /// These two numbers.
    Floats(f64, f64),
    /// This choice.
    Bool(bool),
    /// This word.
    Word(&'static str),
    /// What that other argument is.
    SameAs(&'static str),
}

/// One argument of a signature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// PyTorch's name for it, in snake case.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is when left out.
    pub default: Default,
    /// Whether it must be named: where PyTorch has another argument at this position, or a number alone says too little.
    pub by_name: bool,
}

/// An argument that must be given.
pub const fn required(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, default: Default::Required, by_name: false }
}

/// An argument that may be left out.
pub const fn optional(name: &'static str, kind: Kind, default: Default) -> Argument {
    Argument { name, kind, default, by_name: false }
}

/// An argument that may be left out and is never given by position.
pub const fn named(name: &'static str, kind: Kind, default: Default) -> Argument {
    Argument { name, kind, default, by_name: true }
}

/// A layer, loss or optimizer by name: how it is called and how it is made.
pub struct Definition<T: 'static> {
    /// The name in the language.
    pub name: &'static str,
    /// One line for reference tables and for "did you mean".
    pub summary: &'static str,
    /// The arguments in positional order.
    pub arguments: &'static [Argument],
    /// How many values it is applied to. Zero: it is a value itself (`parameter`).
    pub inputs: std::ops::RangeInclusive<usize>,
    /// Whether it has parameters, and so must be declared as a member.
    pub has_parameters: bool,
    /// Makes it from checked arguments.
    pub build: fn(&Arguments) -> Result<T, ArgumentError>,
}

/// What is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArgumentError {
    /// Which one.
    pub argument: &'static str,
    /// What is wrong, with the value, and what would be right.
    pub message: String,
}

impl ArgumentError {
    /// An error at `argument`.
    pub fn new(argument: &'static str, message: impl Into<String>) -> Self {
        ArgumentError { argument, message: message.into() }
    }
}

/// The arguments of a call, each of its kind, with defaults filled in.
pub struct Arguments {
    signature: &'static [Argument],
    values: Vec<Value>,
}

impl Arguments {
    /// Checks the given values against a signature. `given[i]` is the value of `signature[i]`, if there was one.
    ///
    /// # Errors
    /// All that is wrong: arguments that are missing or of another kind.
    pub fn check(signature: &'static [Argument], given: Vec<Option<Value>>) -> Result<Arguments, Vec<ArgumentError>> {
        let mut errors = Vec::new();
        let mut values: Vec<Option<Value>> = Vec::with_capacity(signature.len());
        for (argument, value) in signature.iter().zip(given.into_iter().chain(std::iter::repeat(None))) {
            values.push(match value {
                Some(value) => match conform(argument.kind, value) {
                    Ok(value) => Some(value),
                    Err(value) => {
                        let message = format!("`{}` must be {}, not {value}", argument.name, argument.kind);
                        errors.push(ArgumentError::new(argument.name, message));
                        None
                    }
                },
                None => match argument.default {
                    Default::Required => {
                        let message = format!("`{}` is missing: {}", argument.name, argument.kind);
                        errors.push(ArgumentError::new(argument.name, message));
                        None
                    }
                    Default::SameAs(_) => None,
                    Default::Int(v) => conform(argument.kind, Value::Int(v)).ok(),
                    Default::Float(v) => Some(Value::Float(v)),
                    Default::Floats(a, b) => Some(Value::List(vec![Value::Float(a), Value::Float(b)])),
                    Default::Bool(v) => Some(Value::Bool(v)),
                    Default::Word(v) => Some(Value::Word(v.to_string())),
                },
            });
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (i, argument) in signature.iter().enumerate() {
            if let (None, Default::SameAs(other)) = (&values[i], argument.default) {
                values[i] = signature.iter().position(|a| a.name == other).and_then(|j| values[j].clone());
            }
        }
        let values = values.into_iter().map(|v| v.expect("every default names an argument before it")).collect();
        Ok(Arguments { signature, values })
    }

    fn get(&self, name: &str) -> &Value {
        let index = self.signature.iter().position(|a| a.name == name);
        &self.values[index.expect("`build` asks for arguments of its own signature")]
    }

    /// A size, count or axis.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            Value::Int(v) => *v,
            _ => unreachable!("checked to be an integer"),
        }
    }

    /// A size or count.
    pub fn size(&self, name: &str) -> u64 {
        self.int(name).unsigned_abs()
    }

    /// A pair of sizes or counts.
    pub fn pair(&self, name: &str) -> [u64; 2] {
        match self.get(name) {
            Value::List(v) => match v[..] {
                [Value::Int(a), Value::Int(b)] => [a.unsigned_abs(), b.unsigned_abs()],
                _ => unreachable!("checked to be a pair"),
            },
            _ => unreachable!("checked to be a pair"),
        }
    }

    /// A list of integers.
    pub fn ints(&self, name: &str) -> Vec<i64> {
        match self.get(name) {
            Value::List(v) => v.iter().map(|v| if let Value::Int(v) = v { *v } else { 0 }).collect(),
            _ => unreachable!("checked to be a list"),
        }
    }

    /// A choice.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Bool(true))
    }

    /// A number.
    pub fn float(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Float(v) => *v,
            _ => unreachable!("checked to be a number"),
        }
    }

    /// A list of numbers.
    pub fn floats(&self, name: &str) -> Vec<f64> {
        match self.get(name) {
            Value::List(v) => v.iter().map(|v| if let Value::Float(v) = v { *v } else { 0.0 }).collect(),
            _ => unreachable!("checked to be a list"),
        }
    }

    /// A word.
    pub fn word(&self, name: &str) -> &str {
        match self.get(name) {
            Value::Word(v) => v,
            _ => unreachable!("checked to be a word"),
        }
    }
}

/// `value` as `kind` stores it, or the value back where it does not fit.
fn conform(kind: Kind, value: Value) -> Result<Value, Value> {
    let int_in = |value: &Value, min: i64| matches!(value, Value::Int(v) if (min..=MAX_INTEGER).contains(v));
    let least = match kind {
        Kind::Size | Kind::SizePair => 1,
        Kind::Axis => -MAX_INTEGER,
        _ => 0,
    };
    let float = |value: &Value, min: f64, max: f64| match *value {
        Value::Int(v) if (min..=max).contains(&(v as f64)) => Some(Value::Float(v as f64)),
        Value::Float(v) if (min..=max).contains(&v) => Some(Value::Float(v)),
        _ => None,
    };
    let floats = |values: &[Value], min, max| values.iter().map(|v| float(v, min, max)).collect::<Option<Vec<_>>>();
    let converted = match (kind, &value) {
        (Kind::Size | Kind::Count | Kind::Axis, _) if int_in(&value, least) => Some(value.clone()),
        (Kind::SizePair | Kind::CountPair, Value::Int(_)) if int_in(&value, least) => {
            Some(Value::List(vec![value.clone(), value.clone()]))
        }
        (Kind::SizePair | Kind::CountPair, Value::List(v)) if v.len() == 2 && v.iter().all(|v| int_in(v, least)) => {
            Some(value.clone())
        }
        (Kind::Dims, Value::List(v)) if v.iter().all(|v| int_in(v, 1) || *v == Value::Int(-1)) => Some(value.clone()),
        (Kind::Counts, Value::List(v)) if v.iter().all(|v| int_in(v, 0)) => Some(value.clone()),
        (Kind::Bool, Value::Bool(_)) => Some(value.clone()),
        (Kind::Float { min, max }, _) => float(&value, min, max),
        (Kind::FloatPair { min, max }, Value::List(v)) if v.len() == 2 => floats(v, min, max).map(Value::List),
        (Kind::Floats, Value::List(v)) if !v.is_empty() => floats(v, f64::MIN, f64::MAX).map(Value::List),
        (Kind::Floats, _) => float(&value, f64::MIN, f64::MAX).map(|v| Value::List(vec![v])),
        (Kind::Word(words), Value::Word(word)) if words.contains(&word.as_str()) => Some(value.clone()),
        _ => None,
    };
    converted.ok_or(value)
}
