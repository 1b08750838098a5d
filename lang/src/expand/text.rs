//! Literals as Rust source text.

/// A string literal.
pub(super) fn literal(code: &mut String, text: &str) {
    code.push('"');
    for c in text.chars() {
        match c {
            '"' => code.push_str("\\\""),
            '\\' => code.push_str("\\\\"),
            '\n' => code.push_str("\\n"),
            '\r' => code.push_str("\\r"),
            '\0' => code.push_str("\\0"),
            c => code.push(c),
        }
    }
    code.push('"');
}

/// A byte string literal.
pub(super) fn byte_literal(code: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    code.push_str("b\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                code.push('\\');
                code.push(char::from(byte));
            }
            b' '..=b'~' => code.push(char::from(byte)),
            _ => {
                code.push_str("\\x");
                code.push(char::from(DIGITS[usize::from(byte >> 4)]));
                code.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
    code.push('"');
}
