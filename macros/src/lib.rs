//! The procedural macro `network!` of Plimsoll. All of it is in `plimsoll-lang`.

use proc_macro::TokenStream;

/// The work is done by `plimsoll-lang`, an ordinary library that other programs can use too.
#[proc_macro]
pub fn network(tokens: TokenStream) -> TokenStream {
    plimsoll_lang::expand::network(tokens.into()).into()
}
