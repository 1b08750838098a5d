//! What the language refuses, so that no input whatever takes the compiler's time, memory or stack without bound.
//!
//! Each limit lies far above the largest network that is known to be of use.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::report::Report;

/// How deep brackets may nest in the source. The parser recurses once for each.
pub const NESTING: usize = 64;

/// How deep blocks, lists and expressions may nest once blocks are put in place. The lowering recurses once for each; twice
/// as many would still do with 2 MB of stack, unoptimized.
pub const DEPTH: usize = 128;

/// How many tokens a network may have.
pub const TOKENS: usize = 1 << 20;

/// How many layers a network may have once blocks and repetitions are put in place, and how many steps its flow may have.
pub const LAYERS: usize = 10_000;

/// How many steps the lowering may take: expressions evaluated and layers visited, even those that come to nothing.
pub const WORK: usize = 500_000;

/// How many errors are reported at once.
pub const ERRORS: usize = 64;

/// Whether the tokens are few and shallow enough to be parsed. Itself without recursion.
pub fn check(tokens: &TokenStream, report: &mut Report) -> bool {
    let mut count = 0;
    let mut open = vec![tokens.clone().into_iter()];
    let mut last = Span::call_site();
    while let Some(current) = open.last_mut() {
        let Some(token) = current.next() else {
            open.pop();
            continue;
        };
        count += 1;
        last = token.span();
        if count > TOKENS {
            break;
        }
        if let TokenTree::Group(group) = token {
            if open.len() > NESTING {
                let bracket = match group.delimiter() {
                    Delimiter::Brace => "braces",
                    Delimiter::Bracket => "brackets",
                    _ => "parentheses",
                };
                report.error(
                    group.span_open(),
                    format!("{bracket} nest deeper than {NESTING} levels"),
                    "move the inner part into a `block` or a `const`",
                );
                return false;
            }
            open.push(group.stream().into_iter());
        }
    }
    if count > TOKENS {
        report.error(
            last,
            format!("the network has more than {TOKENS} tokens"),
            "write what repeats as a `block`, or as `[layer; n]`",
        );
        return false;
    }
    true
}
