//! Parts of the documents that are made from the code, between two comments:
//!
//! ```text
//! <!-- NAME: made by `BLESS=1 cargo test` -->
//! <!-- end of NAME -->
//! ```
//!
//! A test makes the part anew and compares, so that no document goes stale; with `BLESS=1` it writes what it made.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// Tests run side by side, and may write to one file.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares a part of a file, named from the repository's root, with what it should be.
pub fn check(file: &str, name: &str, content: &str) {
    let _guard = WRITING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (start, end) = (format!("<!-- {name}: made by `BLESS=1 cargo test` -->\n"), format!("<!-- end of {name} -->"));
    let from = text.find(&start).unwrap_or_else(|| panic!("{file} has no line {start}")) + start.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("{file} has no line {end}"));
    let content = format!("{}\n", content.trim_end());
    if text[from..to] == content {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        let new = format!("{}{content}{}", &text[..from], &text[to..]);
        fs::write(&path, new).unwrap_or_else(|error| panic!("{file}: {error}"));
        return;
    }
    let command = "BLESS=1 cargo test --test docs --test peers --test recompute --test zoo";
    panic!("{file}, {name}: it should be\n\n{content}\nbut is\n\n{}\nTo renew it: {command}", &text[from..to]);
}

/// Text as a block of code.
#[allow(dead_code)] // Not every test that includes this has blocks.
pub fn block(text: &str) -> String {
    format!("```text\n{}\n```", text.trim_end())
}
