//! Tokens to syntax tree. What can't be read is reported and skipped up to the next comma, so that one mistake makes
//! one error and hides no other.

mod attributes;
mod expressions;
mod forward;
mod literals;
mod members;
mod network;
mod tokens;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::buffer::TokenBuffer;

pub use tokens::Tokens;

use crate::ast::Source;
use crate::limits;
use crate::report::Report;

/// Reads `network! { ... }`.
pub fn parse(tokens: TokenStream, report: &mut Report) -> Source {
    if !limits::check(&tokens, report) {
        return Source::default();
    }
    let buffer = TokenBuffer::new2(tokens);
    let mut tokens = Tokens::new(buffer.begin());
    Parser { report, network: None }.source(&mut tokens)
}

/// Where mistakes go while parsing. Its methods take tokens and return `None` after a mistake that they reported.
struct Parser<'r> {
    report: &'r mut Report,
    /// The network's name, once it was read.
    network: Option<String>,
}

impl Parser<'_> {
    /// Reports that the next token is not what belongs here.
    fn expected<T>(&mut self, what: &str, help: &str, tokens: &Tokens) -> Option<T> {
        self.report.error(tokens.span(), format!("expected {what}, found {}", tokens.describe()), help);
        None
    }

    /// Whether a name may be that of a Rust item, which networks and consts become.
    fn may_be_an_item(&mut self, ident: &Ident) -> bool {
        // A keyword since the edition of 2024, whatever the one at hand.
        let is_ident = syn::parse2::<Ident>(TokenTree::from(ident.clone()).into()).is_ok() && ident != "gen";
        if !is_ident {
            let what = if ident == "_" { "is no name" } else { "is a keyword of Rust" };
            self.report.error(ident.span(), format!("`{ident}` {what}"), "choose another name");
        }
        is_ident
    }

    /// Reads `item`s with commas between; a comma after the last is allowed. An item that can't be read is skipped.
    fn separated<'a, T>(
        &mut self,
        tokens: &mut Tokens<'a>,
        mut item: impl FnMut(&mut Self, &mut Tokens<'a>) -> Option<T>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        while !tokens.at_end() {
            match item(self, tokens) {
                Some(item) => {
                    items.push(item);
                    self.comma(tokens);
                }
                None => {
                    tokens.skip_to(',');
                    tokens.punct(',');
                }
            }
        }
        items
    }

    /// Takes the comma after an item, or reports that it is missing and skips to the next one, unless another item
    /// seems to start right away.
    fn comma(&mut self, tokens: &mut Tokens) {
        if tokens.at_end() || tokens.punct(',').is_some() {
            return;
        }
        self.expected::<()>("`,`", "items are separated by commas", tokens);
        let mut ahead = *tokens;
        if ahead.ident().is_none() && ahead.punct('#').is_none() {
            tokens.skip_to(',');
            tokens.punct(',');
        }
    }
}
