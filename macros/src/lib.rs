//! The procedural macro `network!` of Plimsoll. All of it is in `plimsoll-lang`.

use proc_macro::TokenStream;

/// Declares a neural network, plans every byte of its training step, and refuses to build where a declared budget is
/// exceeded. The language is described in the documentation of `plimsoll` and in `docs/language.md`.
#[proc_macro]
pub fn network(tokens: TokenStream) -> TokenStream {
    plimsoll_lang::expand::network(tokens.into()).into()
}
