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

/// How many steps the lowering may take: expressions evaluated, elements of lists copied and layers visited, even those
/// that come to nothing.
pub const WORK: usize = 500_000;

/// How many errors are reported at once.
pub const ERRORS: usize = 64;

/// How many characters a name may have.
pub const NAME: usize = 256;

/// How many elements a list of numbers may have.
pub const LIST: usize = 4096;

/// How many axes a shape may have.
pub const RANK: usize = 16;

/// Among how many names one is looked for that resembles a wrong one.
pub const SUGGESTIONS: usize = 1024;

/// How many characters of a value, or of a line that holds one, a message shows.
pub const SHOWN: usize = 80;

/// `text`, its end left out where it is longer than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

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
        if let TokenTree::Ident(ident) = &token {
            let text = ident.to_string();
            if text.chars().nth(NAME).is_some() {
                let message = format!("the name `{}` has more than {NAME} characters", shortened(&text, SHOWN));
                report.error(last, message, "choose a shorter one");
                return false;
            }
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
