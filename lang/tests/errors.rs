//! Every mistake has an error of its own, at the user's own token, with a remedy.
//!
//! The cases are in `errors/`, a file for each topic: a source, and below `---` what is reported for it, the place in
//! square brackets. After a change of messages, look at the difference that `BLESS=1 cargo test -p plimsoll-lang` makes.

use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;

use plimsoll_lang::report::Report;
use proc_macro2::TokenStream;

/// What is reported for a source, as the case files show it.
fn reported(source: &str) -> String {
    let tokens = TokenStream::from_str(source).expect("a case is made of tokens");
    let mut report = Report::default();
    let declaration = plimsoll_lang::declare(tokens, &mut report);
    let mut text = String::new();
    for mistake in report.mistakes() {
        let (start, end) = (mistake.place.start.byte_range(), mistake.place.end.byte_range());
        let place = match source.get(start.start..end.end) {
            Some("") | None => "the whole macro".to_string(),
            Some(place) => place.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        assert!(mistake.message.contains("\nhelp: "), "no remedy in: {}", mistake.message);
        writeln!(text, "[{place}] {}", mistake.message).expect("writing to a string");
    }
    if report.is_empty() {
        assert!(declaration.is_some_and(|d| d.graph.is_some()), "neither a graph nor an error: {source}");
        text.push_str("no error\n");
    }
    text
}

#[test]
fn messages_are_as_shown() {
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).expect("the cases") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let mut new = String::new();
        for case in text.split("\n===\n") {
            let (source, expected) = case.split_once("\n---\n").unwrap_or((case, ""));
            let found = reported(source);
            if !new.is_empty() {
                new.push_str("\n===\n");
            }
            write!(new, "{}\n---\n{found}", source.trim_end()).expect("writing to a string");
            if found.trim_end() != expected.trim_end() {
                write!(wrong, "{}\n--- expected\n{expected}\n--- found\n{found}\n", source.trim()).expect("a string");
            }
        }
        if bless {
            std::fs::write(&path, new).expect("writable");
        }
    }
    assert!(bless || wrong.is_empty(), "{wrong}");
}
