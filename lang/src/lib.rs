//! The language of Plimsoll's `network!` macro: parse, resolve, check, lower to a plan, expand.
//!
//! An ordinary library, so that tests and the command line read networks as the macro does:
//!
//! 1. [`parse`]: tokens to a syntax tree ([`ast`]);
//! 2. [`resolve`]: each name to what it refers to;
//! 3. [`check`]: rules that concern several parts;
//! 4. [`lower`]: blocks put in place, sizes evaluated, values through layers, to a graph of [`plimsoll_plan`].
//!
//! All mistakes of all stages go into one [`report`]. A stage passes over in silence what an earlier one has reported,
//! so that several mistakes are reported in one build, and each only once.

pub mod ast;
pub mod check;
pub mod evaluate;
pub mod expand;
pub mod limits;
pub mod lower;
pub mod parse;
pub mod report;
pub mod resolve;
pub mod suggest;

use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::Graph;
use proc_macro2::{Ident, Span, TokenStream};

use report::Report;

/// What `network! { ... }` declares, as far as it could be read.
#[derive(Debug)]
pub struct Declaration {
    /// Rust's own attributes, for the generated type: documentation, lints, derives.
    pub attributes: Vec<TokenStream>,
    /// The text of the documentation comment, one entry a line.
    pub docs: Vec<String>,
    /// `pub`, `pub(crate)` or nothing.
    pub visibility: TokenStream,
    /// The network's name.
    pub name: Ident,
    /// Its consts, in order.
    pub consts: Vec<Const>,
    /// Where the batch of training, or of inference, is declared.
    pub batch: Option<ast::Place>,
    /// What was declared in `#[budget(...)]`, with its place.
    pub budget: Option<ast::Budget>,
    /// The network as plan knows it; `None` if there are mistakes.
    pub graph: Option<Graph>,
}

/// A const of the network.
#[derive(Debug)]
pub struct Const {
    /// The text of its documentation comment, one entry a line.
    pub docs: Vec<String>,
    /// Its name.
    pub name: Ident,
    /// How many elements are written there, if it is a list.
    pub elements: Option<usize>,
    /// Its value; `None` after a mistake.
    pub value: Option<Value>,
}

/// Reads the tokens between the braces of `network! { ... }`.
///
/// Gives what is declared, unless not even a name could be read, and all mistakes as one error. Without an error, there is a
/// declaration with a graph.
pub fn read(tokens: TokenStream) -> (Option<Declaration>, Option<syn::Error>) {
    let mut report = Report::default();
    let declaration = declare(tokens, &mut report);
    if report.is_empty() && declaration.as_ref().is_none_or(|d| d.graph.is_none()) {
        // Every `None` on the way should have been reported.
        let place = declaration.as_ref().map_or(Span::call_site(), |d| d.name.span());
        report.error(place, "this network could not be read", "this is a bug of Plimsoll's: please report it");
    }
    (declaration, report.into_error())
}

/// As [`read`], with the mistakes in `report`.
pub fn declare(tokens: TokenStream, report: &mut Report) -> Option<Declaration> {
    let mut source = parse::parse(tokens, report);
    resolve::resolve(&mut source, report);
    let sound = check::check(&source, report);
    let consts = lower::evaluate_consts(source.network.as_ref().map_or(&[], |n| &n.consts), report);
    let mut graph = if sound { lower::lower(&source, &consts, report) } else { None };
    if !report.is_empty() {
        graph = None;
    }
    let network = source.network?;
    let settings = network.train.as_ref().or(network.infer.as_ref());
    let batch = settings.and_then(|settings| settings.given("batch")).map(|value| value.place);
    let consts = network.consts.into_iter().zip(consts);
    Some(Declaration {
        attributes: network.attributes,
        docs: network.docs,
        visibility: network.visibility,
        name: network.ident,
        consts: consts
            .map(|(item, value)| {
                let elements = item.value.and_then(|value| match value.kind {
                    ast::ExprKind::List(items) => Some(items.len()),
                    _ => None,
                });
                Const { docs: item.docs, name: item.ident, elements, value }
            })
            .collect(),
        batch,
        budget: network.budget,
        graph,
    })
}
