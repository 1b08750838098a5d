//! The syntax tree of a module.

/// A PTX module.
#[derive(Debug, Default)]
pub struct Module {
    /// The version of PTX, `(8, 1)`.
    pub version: (u32, u32),
    /// The architecture it is for: 75 of `sm_75`.
    pub target: u32,
    /// Variables outside of functions.
    pub variables: Vec<Variable>,
    /// The kernels.
    pub entries: Vec<Entry>,
    /// The source files that `.loc` speaks of.
    pub files: Vec<(u32, String)>,
}

/// A kernel.
#[derive(Debug)]
pub struct Entry {
    /// The name it is launched by.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The most threads of a block, where `.maxntid` says so.
    pub max_threads: Option<u32>,
    /// The body, in order.
    pub body: Vec<Statement>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Where it lies in the parameter space.
    pub offset: usize,
    /// Its bytes.
    pub size: usize,
}

/// A variable in memory.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The line of its declaration.
    pub line: u32,
    /// Where it lives.
    pub space: Space,
    /// Its name.
    pub name: String,
    /// The alignment of its address.
    pub alignment: usize,
    /// Its bytes; `None` for `extern .shared x[]`, whose size a launch gives.
    pub size: Option<usize>,
    /// What it holds from the start; no longer than its size.
    pub initial: Vec<u8>,
}

/// A group of registers: `.reg .b32 %r<6>`, or a single one.
#[derive(Debug, Clone)]
pub struct Registers {
    /// The line of the declaration.
    pub line: u32,
    /// The declared type.
    pub ty: Type,
    /// The name, without a number.
    pub name: String,
    /// How many, numbered from zero; `None` is one register of just this name.
    pub count: Option<u32>,
}

/// A part of a body.
#[derive(Debug)]
pub enum Statement {
    /// `{`: names declared from here on are known until the matching `}`.
    Open,
    /// `}`
    Close,
    /// `.reg`
    Registers(Registers),
    /// `.shared`, `.local`, or a `.param` of a call.
    Variable(Variable),
    /// `name:`
    Label(String),
    /// An instruction.
    Instruction {
        /// Where it stands.
        location: Location,
        /// The predicate before it.
        guard: Option<Guard>,
        /// The mnemonic with its modifiers.
        mnemonic: String,
        /// The operands.
        operands: Vec<Operand>,
    },
}

/// Where an instruction stands, in the PTX and in the source it was compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Location {
    /// The line of the PTX.
    pub line: u32,
    /// The file and line of the last `.loc`.
    pub source: Option<(u32, u32)>,
}

/// `@%p1` or `@!%p1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub predicate: String,
    /// Whether the instruction runs where the predicate is false.
    pub negated: bool,
}

/// An operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A register, a label or a variable.
    Name(String),
    /// `!%p1`
    Not(String),
    /// An integer.
    Integer(i64),
    /// `0f3F800000`, as bits.
    Single(u32),
    /// `0d3FF0000000000000`, as bits.
    Double(u64),
    /// `[%rd1+8]`; without a name, `[8]`.
    Address(Option<String>, i64),
    /// `{%f1, %f2}`
    Vector(Vec<Operand>),
    /// `%r1|%p1`
    Pair(String, String),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
}

/// A space of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// `.global`
    Global,
    /// `.const`
    Constant,
    /// `.shared`
    Shared,
    /// `.local`
    Local,
    /// `.param`
    Parameter,
    /// None named: the address says which.
    Generic,
}

/// A type of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Type {
    Predicate,
    B8,
    B16,
    B32,
    B64,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F32,
    F64,
}

impl Type {
    /// The type of a name without its dot.
    pub fn named(name: &str) -> Option<Type> {
        use Type::*;
        Some(match name {
            "pred" => Predicate,
            "b8" => B8,
            "b16" => B16,
            "b32" => B32,
            "b64" => B64,
            "u8" => U8,
            "u16" => U16,
            "u32" => U32,
            "u64" => U64,
            "s8" => S8,
            "s16" => S16,
            "s32" => S32,
            "s64" => S64,
            "f16" => F16,
            "f32" => F32,
            "f64" => F64,
            _ => return None,
        })
    }

    /// Its bytes in memory.
    pub fn size(self) -> usize {
        use Type::*;
        match self {
            Predicate | B8 | U8 | S8 => 1,
            B16 | U16 | S16 | F16 => 2,
            B32 | U32 | S32 | F32 => 4,
            B64 | U64 | S64 | F64 => 8,
        }
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Whether it is a floating-point number.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32 | Type::F64)
    }
}
