//! Cuts PTX into tokens. A mnemonic with its modifiers (`ld.global.f32`) is one token, as is a number in any notation.

use super::Error;

/// A token and the line it stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// The line, counted from one.
    pub line: u32,
    /// The token's own text; a string keeps its opening quote.
    pub text: &'a str,
}

/// All tokens of a module.
pub fn tokens(source: &str) -> Result<Vec<Token<'_>>, Error> {
    let bytes = source.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of(bytes, at, |byte| byte != b'\n');
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let length = source[at..].find("*/").ok_or_else(|| Error::new(line, "a comment does not end"))?;
                line += source[at..at + length].matches('\n').count() as u32;
                at += length + 2;
                continue;
            }
            b'"' => {
                at = end_of(bytes, at + 1, |byte| byte != b'"' && byte != b'\n');
                if bytes.get(at) != Some(&b'"') {
                    return Err(Error::new(line, "a string does not end"));
                }
                tokens.push(Token { line, text: &source[start..at] });
                at += 1;
                continue;
            }
            byte if is_word(byte) || byte == b'%' => at = end_of(bytes, at + 1, is_word),
            byte if byte.is_ascii_punctuation() => at += 1,
            _ => return Err(Error::new(line, "a character that PTX does not have")),
        }
        tokens.push(Token { line, text: &source[start..at] });
    }
    Ok(tokens)
}

/// What names, mnemonics, directives and numbers are made of.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

fn end_of(bytes: &[u8], start: usize, inside: impl Fn(u8) -> bool) -> usize {
    bytes[start..].iter().position(|byte| !inside(*byte)).map_or(bytes.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).unwrap().into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn an_instruction_is_mnemonic_and_operands() {
        assert_eq!(
            texts("@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+-8];"),
            [
                "@",
                "!",
                "%p1",
                "ld.global.v2.f32",
                "{",
                "%f1",
                ",",
                "%f2",
                "}",
                ",",
                "[",
                "%rd1",
                "+",
                "-",
                "8",
                "]",
                ";"
            ]
        );
        assert_eq!(texts("shfl.sync.bfly.b32 %r1|%p1, %r2, %tid.x, 0f3F800000;")[1..4], ["%r1", "|", "%p1"]);
    }

    #[test]
    fn comments_are_dropped_and_lines_counted() {
        let found = tokens("// one\n/* two\nthree */ ret; \"a b\"\n\n}").unwrap();
        let seen: Vec<_> = found.iter().map(|token| (token.line, token.text)).collect();
        assert_eq!(seen, [(3, "ret"), (3, ";"), (3, "\"a b"), (5, "}")]);
    }

    #[test]
    fn what_does_not_end_is_an_error() {
        assert_eq!(tokens("\n/* x").unwrap_err().line, 2);
        assert_eq!(tokens("\n\n\"x\n\"").unwrap_err().line, 3);
        assert!(tokens("é").is_err());
    }
}
