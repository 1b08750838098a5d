//! From a declaration to the code that `network!` stands for.
//!
//! The small part that carries the user's own tokens is quoted; the rest, constants and tables, is written as text and
//! parsed once, which is what keeps the expansion of a large network fast in a macro that is built without optimization.

mod constants;
mod fallback;

pub(crate) use constants::NAMES;

use std::collections::HashSet;

use plimsoll_plan::arguments::Value;
use plimsoll_plan::footprint::Footprint;
use plimsoll_plan::graph::Graph;
use plimsoll_plan::known::Known;
use plimsoll_plan::layer_table::rows;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::report::{failure, markdown};
use plimsoll_plan::validate::validate;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;

use crate::ast::{Amount, Place};
use crate::limits;
use crate::report::Report;
use crate::{Const, Declaration};

/// Expands `network! { ... }`: the type, its constants and its plan, and every mistake as a `compile_error!` at its place.
pub fn network(tokens: TokenStream) -> TokenStream {
    let mut report = Report::default();
    let Some(declaration) = crate::declare(tokens, &mut report) else {
        return errors(report);
    };
    let known = Known::default();
    let code = match declaration.graph.clone().map(|graph| Plan::new_with(graph, &known)) {
        Some(Ok(plan)) => planned(&declaration, &plan, &known, &mut report),
        Some(Err(error)) => {
            let place = declaration.batch.unwrap_or(Place::from(declaration.name.span()));
            report.error(place, error.to_string(), "use a smaller batch or network");
            fallback::network(&declaration)
        }
        None => fallback::network(&declaration),
    };
    let errors = errors(report);
    quote! { #code #errors }
}

fn errors(report: Report) -> TokenStream {
    report.into_error().map(|error| error.into_compile_error()).unwrap_or_default()
}

/// The code of a network that has a plan; a budget that is exceeded is reported beside it, and the type exists all the
/// same, so that one mistake makes one error.
fn planned(declaration: &Declaration, plan: &Plan, known: &Known, report: &mut Report) -> TokenStream {
    if let Err(fault) = validate(plan) {
        report.error(
            declaration.name.span(),
            format!("the plan is not valid: {fault}"),
            "this is a bug of Plimsoll's: please report it",
        );
    }
    let footprint = Footprint::new_with(plan, known);
    check_budget(declaration, plan, &footprint, report);
    let rows = rows(plan);
    let page = markdown::page(plan, &footprint, &rows);
    let name = declaration.name.to_string();
    let mut code = String::with_capacity(page.len() * 2);
    constants::write(&mut code, &name, &outer_attributes(declaration), plan, &footprint, &rows, &declaration.consts);
    assemble(declaration, &page, &code)
}

/// The budget's failures, each at the tokens of the amount that is exceeded.
fn check_budget(declaration: &Declaration, plan: &Plan, footprint: &Footprint, report: &mut Report) {
    let Some(budget) = &declaration.budget else { return };
    let place = |amount: Option<Amount>| amount.map_or(budget.place, |amount| amount.place);
    let training = failure::training_failure(plan, footprint);
    let exceeded = training.is_some();
    if let Some(message) = training {
        report.push(place(budget.train), message);
    }
    // One amount for both is exceeded by both at once, and said once.
    let same = budget.train.zip(budget.infer).is_some_and(|(train, infer)| same_place(train.place, infer.place));
    if !(exceeded && same)
        && let Some(message) = failure::inference_failure(plan)
    {
        report.push(place(budget.infer), message);
    }
}

fn same_place(a: Place, b: Place) -> bool {
    format!("{:?}", a.start) == format!("{:?}", b.start)
}

/// The type with the user's own attributes and visibility, and what was written as text.
fn assemble(declaration: &Declaration, page: &str, code: &str) -> TokenStream {
    let Declaration { attributes, visibility, name, .. } = declaration;
    let page = read(&format!("#[doc = \"\"] #[doc = {page:?}]"));
    let code = read(code);
    quote! {
        #(#attributes)*
        #page
        #visibility struct #name;
        #code
    }
}

/// The tokens of what was written as text.
fn read(code: &str) -> TokenStream {
    code.parse().unwrap_or_else(|error| {
        let message = format!("Plimsoll wrote code that can't be read: {error}");
        syn::Error::new(Span::call_site(), message).into_compile_error()
    })
}

/// The attributes of every item of a network, which follow from those of its type.
fn outer_attributes(declaration: &Declaration) -> String {
    let content = |attribute: &TokenStream| match attribute.clone().into_iter().nth(1) {
        Some(TokenTree::Group(group)) => Some(group.stream()),
        _ => None,
    };
    let carried = declaration.attributes.iter().filter_map(content).filter_map(carried);
    quote! { #(#[#carried])* }.to_string()
}

/// What an attribute of the type means for its implementations: `cfg` the same, `deprecated` that they may use the type
/// nonetheless, and a derive or a lint nothing.
fn carried(attribute: TokenStream) -> Option<TokenStream> {
    if is_word(attribute.clone(), "cfg") {
        return Some(attribute);
    }
    if is_word(attribute.clone(), "deprecated") {
        return Some(quote! { allow(deprecated) });
    }
    if !is_word(attribute.clone(), "cfg_attr") {
        return None;
    }
    let Some(TokenTree::Group(group)) = attribute.into_iter().nth(1) else { return None };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let mut parts = tokens
        .split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
        .map(|part| part.iter().cloned().collect::<TokenStream>());
    let condition = parts.next()?;
    let kept: Vec<TokenStream> = parts.filter_map(carried).collect();
    (!kept.is_empty()).then(|| quote! { cfg_attr(#condition, #(#kept),*) })
}

/// Whether an attribute's content starts with this word.
fn is_word(attribute: TokenStream, word: &str) -> bool {
    matches!(attribute.into_iter().next(), Some(TokenTree::Ident(ident)) if ident == word)
}

/// The consts that become Rust items. A name that is taken has been reported; a word is of no type that Rust has.
fn exported(consts: &[Const]) -> impl Iterator<Item = &Const> {
    let mut seen: HashSet<String> = NAMES.iter().copied().chain(["summary"]).map(str::to_string).collect();
    let is_item = |constant: &&Const| constant.value.as_ref().is_none_or(|value| rust(value).is_some());
    consts.iter().filter(move |constant| seen.insert(constant.name.to_string())).filter(is_item)
}

/// The constants that the user declared, as Rust items.
fn write_user_constants(code: &mut String, consts: &[Const]) {
    for constant in exported(consts) {
        // After a mistake, which has been reported, any value does.
        let unknown = match constant.elements {
            Some(elements) => ("[usize]", format!("&[1; {}]", elements.min(limits::LIST))),
            None => ("usize", "1".to_string()),
        };
        let (kind, value) = constant.value.as_ref().and_then(rust).unwrap_or(unknown);
        let kind = match kind.strip_prefix('[') {
            Some(element) => format!("&'static [::core::primitive::{element}"),
            None => format!("::core::primitive::{kind}"),
        };
        for line in &constant.docs {
            code.push_str(&format!("#[doc = {line:?}]"));
        }
        if constant.docs.is_empty() {
            code.push_str("#[doc = \"Declared in the network.\"]");
        }
        code.push_str(&format!("pub const {}: {kind} = {value};\n", constant.name));
    }
}

/// The type and text of a value in Rust.
fn rust(value: &Value) -> Option<(&'static str, String)> {
    Some(match value {
        Value::Int(value) if *value >= 0 => ("usize", value.to_string()),
        Value::Int(value) => ("isize", value.to_string()),
        Value::Float(value) => ("f64", format!("{value:?}")),
        Value::Bool(value) => ("bool", value.to_string()),
        Value::List(values) => {
            let items: Vec<(&str, String)> = values.iter().map(rust).collect::<Option<_>>()?;
            let has = |kind| items.iter().any(|item| item.0 == kind);
            let kind = match (has("f64"), has("isize"), has("usize")) {
                _ if items.iter().any(|item| !["f64", "isize", "usize"].contains(&item.0)) => return None,
                (true, ..) => "[f64]",
                (false, true, _) => "[isize]",
                _ => "[usize]",
            };
            let shown = items.into_iter().map(|(item, text)| match kind {
                "[f64]" if item != "f64" => format!("{text}.0"),
                _ => text,
            });
            (kind, format!("&[{}]", shown.collect::<Vec<_>>().join(", ")))
        }
        Value::Word(_) => return None,
    })
}

/// The network that a declaration describes, for tests and programs that work on source text.
///
/// # Errors
/// All mistakes, one a line.
pub fn graph(source: &str) -> Result<Graph, String> {
    let tokens: TokenStream = source.parse().map_err(|error| format!("{error}"))?;
    match crate::read(tokens) {
        (_, Some(error)) => Err(error.into_iter().map(|e| e.to_string()).collect::<Vec<_>>().join("\n")),
        (Some(Declaration { graph: Some(graph), .. }), None) => Ok(graph),
        _ => Err("no network".to_string()),
    }
}
