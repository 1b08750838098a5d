//! The syntax tree of `network!`, with the place of everything in the source.
//!
//! [`parse`](crate::parse) makes it, [`resolve`](crate::resolve) fills in what each name refers to, and the later stages
//! read it. Whatever may repeat without end is flat (the links of a method chain, the terms of a sum, the branches of
//! an `else if`), so that recursion over the tree goes no deeper than the source's brackets.

use std::fmt;

use plimsoll_plan::arguments::Definition;
use plimsoll_plan::layers::Layer as PlanLayer;
use plimsoll_plan::strategy::Saving;
use proc_macro2::{Ident, Span, TokenStream};

/// A stretch of the source, from its first token to its last.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The first token.
    pub start: Span,
    /// The last token.
    pub end: Span,
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Place { start: span, end: span }
    }
}

impl Place {
    /// From the start of this to the end of `other`.
    pub fn to(self, other: impl Into<Place>) -> Place {
        Place { start: self.start, end: other.into().end }
    }
}

/// A name as the user wrote it. Its text is taken out of the token once: asking a compiler's token is slow.
#[derive(Clone, Debug)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl From<Ident> for Name {
    fn from(ident: Ident) -> Self {
        Name { text: ident.to_string(), span: ident.span() }
    }
}

impl From<&Name> for Place {
    fn from(name: &Name) -> Self {
        name.span.into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All of one `network! { ... }`.
#[derive(Debug, Default)]
pub struct Source {
    /// The network, unless it could not be recognized.
    pub network: Option<Network>,
    /// The blocks, in order.
    pub blocks: Vec<Block>,
}

/// `pub struct Name(inputs) { ... }` with its attributes.
#[derive(Debug)]
pub struct Network {
    /// Attributes that are Rust's own, passed on to the generated type: documentation, lints, derives.
    pub attributes: Vec<TokenStream>,
    /// The text of its documentation comment, one entry a line.
    pub docs: Vec<String>,
    /// `#[train(...)]`.
    pub train: Option<Settings>,
    /// `#[infer(...)]`.
    pub infer: Option<Settings>,
    /// `#[budget(...)]`.
    pub budget: Option<Budget>,
    /// `#[without(...)]`.
    pub without: Option<Without>,
    /// `pub`, `pub(crate)` or nothing, as written.
    pub visibility: TokenStream,
    /// The name as a token.
    pub ident: Ident,
    /// The name.
    pub name: Name,
    /// The declared inputs.
    pub inputs: Vec<Input>,
    /// Whether all inputs could be read.
    pub inputs_known: bool,
    /// The consts, in order.
    pub consts: Vec<Const>,
    /// Members and `forward`.
    pub body: Body,
}

/// The arguments of `#[train(...)]` or `#[infer(...)]`.
#[derive(Debug)]
pub struct Settings {
    /// The attribute's own name.
    pub name: Name,
    /// What stands in its parentheses.
    pub arguments: Vec<Argument>,
    /// The whole attribute's place, brackets left out.
    pub place: Place,
}

impl Settings {
    /// The value of an argument, if it is given.
    pub fn given(&self, name: &str) -> Option<&Expr> {
        let argument = self.arguments.iter().find(|a| a.name.as_ref().is_some_and(|n| n.text == name));
        argument.map(|argument| &argument.value)
    }
}

/// What `#[budget(...)]` declares. Amounts are exact: a decimal such as `1.5 GB` never passes through a float.
#[derive(Clone, Debug)]
pub struct Budget {
    /// For training, or for both where one amount was given.
    pub train: Option<Amount>,
    /// For inference, or for both where one amount was given.
    pub infer: Option<Amount>,
    /// What is set aside, for the CUDA context and other programs.
    pub reserve: Option<Amount>,
    /// `recompute`: activations may be computed again until training fits.
    pub recompute: Option<Place>,
    /// The whole attribute's place, brackets left out.
    pub place: Place,
}

/// What `#[without(...)]` declares: ways to save memory that the planner does not take.
#[derive(Clone, Debug)]
pub struct Without {
    /// The savings.
    pub savings: Vec<Saving>,
    /// The whole attribute's place, brackets left out.
    pub place: Place,
}

/// An amount of memory, such as `8 MB`.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// In bytes, rounded down.
    pub bytes: u64,
    /// The family of the unit that it was written in.
    pub units: plimsoll_plan::units::Units,
    /// Number and unit.
    pub place: Place,
}

/// `image: f32[3, 224, 224]`.
#[derive(Debug)]
pub struct Input {
    /// Its name.
    pub name: Name,
    /// Its element type; `None` where that was a mistake.
    pub dtype: Option<plimsoll_plan::shape::DType>,
    /// Its sizes, without the batch.
    pub shape: Vec<Expr>,
    /// From the name to the closing bracket.
    pub place: Place,
}

/// `const NAME = value;`.
#[derive(Debug)]
pub struct Const {
    /// The text of its documentation comment.
    pub docs: Vec<String>,
    /// The name as a token.
    pub ident: Ident,
    /// The name.
    pub name: Name,
    /// The value; `None` where it was a mistake.
    pub value: Option<Expr>,
}

/// `block Name(parameters) { ... }`.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub name: Name,
    /// What it is called with.
    pub parameters: Vec<Parameter>,
    /// Whether all parameters could be read.
    pub parameters_known: bool,
    /// Members and `forward`.
    pub body: Body,
    /// Whether anything calls it. Set by [`resolve`](crate::resolve).
    pub used: bool,
}

/// One parameter of a block: `stride = 1`.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// What it is when left out. May use the parameters before it.
    pub default: Option<Expr>,
}

/// What stands in the braces of a network or block.
#[derive(Debug)]
pub struct Body {
    /// The members, in order.
    pub members: Vec<Member>,
    /// How they are connected, where they are no chain.
    pub forward: Option<Forward>,
    /// The braces.
    pub place: Place,
    /// Whether something in it could not be read, so that an unknown name may be just that.
    pub incomplete: bool,
}

/// An element of a body or a list: `name: layer`, `layer` or `..layer`.
#[derive(Debug)]
pub struct Member {
    /// `#[freeze]`.
    pub frozen: bool,
    /// Its name; without one, its position is its name.
    pub name: Option<Name>,
    /// The dots of `..layer`: the layer's own members take this place.
    pub splice: Option<Span>,
    /// The layer.
    pub layer: Layer,
    /// Whether `forward` uses it. Set by [`resolve`](crate::resolve).
    pub used: bool,
}

/// A layer, or a structure of layers.
#[derive(Debug)]
pub enum Layer {
    /// `conv2d(64)`, `relu` or `Block(64)`.
    Call(Call),
    /// `[a, b, c]`.
    List(Vec<Member>, Place),
    /// `[a; n]`.
    Repeat(Box<Member>, Expr, Place),
    /// `if a { x } else if b { y } else { z }`: the branches in order, the last one without a condition.
    If(Vec<(Option<Expr>, Layer)>, Place),
    /// A mistake that was reported.
    Unknown,
}

impl Layer {
    /// The whole layer's place.
    pub fn place(&self) -> Place {
        match self {
            Layer::Call(call) => call.place,
            Layer::List(_, place) | Layer::Repeat(_, _, place) | Layer::If(_, place) => *place,
            Layer::Unknown => Span::call_site().into(),
        }
    }
}

/// `name(arguments)`, of a layer, a block, a member, a loss or an optimizer.
#[derive(Debug)]
pub struct Call {
    /// What is called.
    pub name: Name,
    /// With what. In `x.f(a)`, only `a`.
    pub arguments: Vec<Argument>,
    /// From the name to the closing parenthesis.
    pub place: Place,
    /// What the name refers to.
    pub target: Target,
}

/// An argument of a call: `64` or `stride = 2`.
#[derive(Debug)]
pub struct Argument {
    /// Its name, if it is given by name.
    pub name: Option<Name>,
    /// Its value.
    pub value: Expr,
}

impl Argument {
    /// From the name, if there is one, to the end of the value.
    pub fn place(&self) -> Place {
        match &self.name {
            Some(name) => Place::from(name).to(self.value.place),
            None => self.value.place,
        }
    }
}

/// Which of a call's arguments is which: `slots[i]` is the index, in the call, of the signature's argument `i`.
pub type Slots = Vec<Option<usize>>;

/// What a call's name refers to.
#[derive(Clone, Debug, Default)]
pub enum Target {
    /// Nothing, or not known yet. After [`resolve`](crate::resolve): a mistake that was reported.
    #[default]
    Unknown,
    /// A layer of the language, applied to the first `values` arguments.
    Layer {
        /// Which.
        definition: LayerDefinition,
        /// How many of the call's first arguments are values that it is applied to.
        values: usize,
        /// The arguments after those.
        slots: Slots,
    },
    /// The block of that index.
    Block {
        /// Its index in [`Source::blocks`].
        block: usize,
        /// Its arguments.
        slots: Slots,
    },
    /// `tied(member)`: the names along the path to the member.
    Tied(Vec<Name>),
    /// The member of that index in this body.
    Member(usize),
    /// A loss or optimizer.
    Setting(Slots),
    /// The smaller number.
    Min,
    /// The larger number.
    Max,
}

/// A layer of the language, printable.
#[derive(Clone, Copy)]
pub struct LayerDefinition(pub &'static Definition<PlanLayer>);

impl fmt::Debug for LayerDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl std::ops::Deref for LayerDefinition {
    type Target = Definition<PlanLayer>;
    fn deref(&self) -> &Definition<PlanLayer> {
        self.0
    }
}

/// An expression: of numbers everywhere, and of the network's values in `forward`.
#[derive(Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub place: Place,
}

/// What an expression is.
#[derive(Debug)]
pub enum ExprKind {
    /// `64`.
    Int(i64),
    /// `1e-3`.
    Float(f64),
    /// `true`.
    Bool(bool),
    /// `x`.
    Name(String, Reference),
    /// `encoder.embed`: a member of a member, in `tied(...)`.
    Path(Vec<Name>),
    /// `(3, 5)` or `[0.485, 0.456]`.
    List(Vec<Expr>),
    /// `min(a, b)`, `relu(x)`.
    Call(Call),
    /// `x.conv1().relu()`.
    Chain(Box<Expr>, Vec<Call>),
    /// `-x`.
    Negative(Box<Expr>),
    /// `!x`.
    Not(Box<Expr>),
    /// `a + b - c`: the first operand, then operators of one precedence, each with its right operand.
    Operations(Box<Expr>, Vec<(Operator, Place, Expr)>),
    /// A mistake that was reported.
    Unknown,
}

/// What a name in an expression refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reference {
    /// Nothing, or not known yet. After [`resolve`](crate::resolve): a mistake that was reported.
    #[default]
    Unknown,
    /// The network's const of that index.
    Const(usize),
    /// The block's parameter of that index.
    Parameter(usize),
    /// An input of `forward`, or what a `let` bound.
    Local(usize),
    /// A member used as a value: a `parameter`.
    Member(usize),
    /// Nothing: the word is itself the argument, such as `tanh`.
    Word,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Operator {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            Operator::Or => "||",
            Operator::And => "&&",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }

    /// How strongly it binds; Rust's order.
    pub fn precedence(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => 3,
            Operator::Add | Operator::Subtract => 4,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 5,
        }
    }
}

/// `fn forward(x) { let y = ...; tail }`.
#[derive(Debug)]
pub struct Forward {
    /// The token `forward`.
    pub name: Name,
    /// Its inputs.
    pub inputs: Vec<ForwardInput>,
    /// Whether all inputs could be read, and have names of their own.
    pub inputs_known: bool,
    /// The `let`s, in order.
    pub lets: Vec<Let>,
    /// What it returns; `None` where it was a mistake.
    pub output: Option<Expr>,
    /// Whether something in it could not be read or refers to nothing, so that what seems unused may not be.
    pub incomplete: bool,
}

/// `let name = value;`.
#[derive(Debug)]
pub struct Let {
    /// What it binds.
    pub name: Name,
    /// To what.
    pub value: Expr,
    /// Whether anything uses it. Set by [`resolve`](crate::resolve).
    pub used: bool,
}

/// An input of `forward`.
#[derive(Debug)]
pub struct ForwardInput {
    /// Its name.
    pub name: Name,
    /// Whether anything uses it. Set by [`resolve`](crate::resolve).
    pub used: bool,
}
