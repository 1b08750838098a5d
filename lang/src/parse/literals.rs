//! Literals: numbers and truth values. Not text, which the language has no use for.

use proc_macro2::Literal;
use syn::Lit;

use super::Parser;
use crate::ast::ExprKind;

impl Parser<'_> {
    /// The value of a literal.
    pub(super) fn literal(&mut self, literal: Literal) -> ExprKind {
        let span = literal.span();
        match Lit::new(literal) {
            Lit::Int(number) => {
                if !number.suffix().is_empty() {
                    let message = format!("`{number}` has a suffix");
                    let help = format!("numbers have no Rust types here: write `{}`", number.base10_digits());
                    self.report.error(span, message, help);
                    return ExprKind::Unknown;
                }
                match number.base10_digits().parse() {
                    Ok(value) => ExprKind::Int(value),
                    Err(_) => {
                        let digits = number.base10_digits();
                        let shown = if digits.len() > 24 { "this number" } else { digits };
                        let message = format!("{shown} is too large");
                        self.report.error(span, message, format!("the largest integer is {}", i64::MAX));
                        ExprKind::Unknown
                    }
                }
            }
            Lit::Float(number) => {
                if !number.suffix().is_empty() {
                    let message = format!("`{number}` has a suffix");
                    let help = format!("numbers have no Rust types here: write `{}`", number.base10_digits());
                    self.report.error(span, message, help);
                    return ExprKind::Unknown;
                }
                match number.base10_parse::<f64>() {
                    Ok(value) if value.is_finite() => ExprKind::Float(value),
                    _ => {
                        self.report.error(span, "the number is too large", "the largest is about 1.8e308");
                        ExprKind::Unknown
                    }
                }
            }
            Lit::Str(text) => {
                let message = "expected a number or a word, found text in quotes";
                let shown = text.value();
                let is_word = !shown.is_empty() && shown.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                let help = if let Some(remedy) = crate::suggest::word(&shown) {
                    remedy.to_string()
                } else if is_word {
                    format!("words stand without quotes: `{shown}`")
                } else {
                    "words stand without quotes".to_string()
                };
                self.report.error(span, message, help);
                ExprKind::Unknown
            }
            _ => {
                self.report.error(
                    span,
                    "expected a number or a word, found another kind of literal",
                    "write an integer such as `64`, a number such as `1e-3`, `true`, `false` or a word",
                );
                ExprKind::Unknown
            }
        }
    }
}
