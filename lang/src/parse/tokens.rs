//! A cursor over tokens: looks ahead, takes, skips. It copies nothing and never goes back.

use proc_macro2::{Delimiter, Ident, Literal, Spacing, Span, TokenStream, TokenTree};
use syn::buffer::Cursor;

use crate::ast::{Name, Place};

/// The tokens that are left within one pair of brackets.
#[derive(Clone, Copy)]
pub struct Tokens<'a> {
    cursor: Cursor<'a>,
    last: Span,
}

/// What stands between a pair of brackets.
pub struct Group<'a> {
    /// The tokens inside.
    pub tokens: Tokens<'a>,
    /// The brackets and all between.
    pub place: Place,
}

impl<'a> Tokens<'a> {
    /// The tokens from `cursor` on.
    pub fn new(cursor: Cursor<'a>) -> Self {
        Tokens { cursor, last: cursor.span() }
    }

    /// Whether none are left.
    pub fn at_end(&self) -> bool {
        self.cursor.eof()
    }

    /// Whether nothing was taken since `earlier`.
    pub fn is_at(&self, earlier: &Tokens<'a>) -> bool {
        self.cursor == earlier.cursor
    }

    /// The place of the next token, or of the closing bracket.
    pub fn span(&self) -> Span {
        self.cursor.span()
    }

    /// The place of the token taken last.
    pub fn last(&self) -> Span {
        self.last
    }

    /// The next token as a message names it.
    pub fn describe(&self) -> String {
        if let Some((_, delimiter, _, _)) = self.cursor.any_group() {
            return match delimiter {
                Delimiter::Parenthesis => "`(`".to_string(),
                Delimiter::Brace => "`{`".to_string(),
                Delimiter::Bracket => "`[`".to_string(),
                Delimiter::None => "an interpolated token".to_string(),
            };
        }
        match self.cursor.token_tree() {
            Some((token, _)) => {
                let text = token.to_string();
                if text.chars().count() > 40 { "a long token".to_string() } else { format!("`{text}`") }
            }
            None => "the end".to_string(),
        }
    }

    /// Takes the next token if it is an identifier or keyword.
    pub fn ident(&mut self) -> Option<Ident> {
        let (ident, rest) = self.cursor.ident()?;
        self.advance(ident.span(), rest);
        Some(ident)
    }

    /// Takes the next token if it is an identifier or keyword.
    pub fn name(&mut self) -> Option<Name> {
        self.ident().map(Name::from)
    }

    /// Takes the next token if it is an identifier or keyword that is followed by `follower` and not by two of them
    /// or by `follower` and `=`: a name and its `:` or `=`.
    pub fn name_before(&mut self, follower: char) -> Option<Name> {
        let (ident, rest) = self.cursor.ident()?;
        let (punct, after) = rest.punct()?;
        if punct.as_char() != follower {
            return None;
        }
        let doubled = punct.spacing() == Spacing::Joint
            && after.punct().is_some_and(|(second, _)| matches!(second.as_char(), '=' | ':'));
        if doubled {
            return None;
        }
        self.advance(punct.span(), after);
        Some(ident.into())
    }

    /// Whether the next token is this word.
    pub fn peek_word(&self, word: &str) -> bool {
        self.cursor.ident().is_some_and(|(ident, _)| ident == word)
    }

    /// Takes the next token if it is this word.
    pub fn word(&mut self, word: &str) -> Option<Span> {
        let (ident, rest) = self.cursor.ident()?;
        if ident != word {
            return None;
        }
        self.advance(ident.span(), rest);
        Some(ident.span())
    }

    /// Takes the next token if it is a literal.
    pub fn literal(&mut self) -> Option<Literal> {
        let (literal, rest) = self.cursor.literal()?;
        self.advance(literal.span(), rest);
        Some(literal)
    }

    /// Whether the next token starts with this character.
    pub fn peek(&self, character: char) -> bool {
        self.cursor.punct().is_some_and(|(punct, _)| punct.as_char() == character)
    }

    /// Takes the next token if it is this character.
    pub fn punct(&mut self, character: char) -> Option<Span> {
        let (punct, rest) = self.cursor.punct()?;
        if punct.as_char() != character {
            return None;
        }
        self.advance(punct.span(), rest);
        Some(punct.span())
    }

    /// The next one or two punctuation characters; the second only where it is joined to the first.
    pub fn peek_operator(&self) -> Option<(char, Option<char>)> {
        let (first, rest) = self.cursor.punct()?;
        let second = match first.spacing() {
            Spacing::Joint => rest.punct().map(|(second, _)| second.as_char()),
            Spacing::Alone => None,
        };
        Some((first.as_char(), second))
    }

    /// Takes two joined characters, such as `..`. The place is that of the first.
    pub fn punct2(&mut self, first: char, second: char) -> Option<Span> {
        if self.peek_operator() != Some((first, Some(second))) {
            return None;
        }
        let start = self.punct(first);
        self.punct(second);
        start
    }

    /// Whether the next token opens such a bracket.
    pub fn peek_group(&self, delimiter: Delimiter) -> bool {
        self.cursor.group(delimiter).is_some()
    }

    /// Takes the next token if it is such a bracket with all inside.
    pub fn group(&mut self, delimiter: Delimiter) -> Option<Group<'a>> {
        let (inside, span, rest) = self.cursor.group(delimiter)?;
        let tokens = Tokens { cursor: inside, last: span.open() };
        self.advance(span.close(), rest);
        Some(Group { tokens, place: Place { start: span.open(), end: span.close() } })
    }

    /// Takes one token, or one pair of brackets with all inside.
    pub fn skip(&mut self) -> bool {
        match self.cursor.any_group() {
            Some((_, _, span, rest)) => {
                self.advance(span.close(), rest);
                true
            }
            None => match self.cursor.token_tree() {
                Some((token, rest)) => {
                    self.advance(token.span(), rest);
                    true
                }
                None => false,
            },
        }
    }

    /// Takes one token, or one pair of brackets with all inside, as it stands.
    pub fn token(&mut self) -> Option<TokenTree> {
        let (token, rest) = self.cursor.token_tree()?;
        self.advance(token.span(), rest);
        Some(token)
    }

    /// Takes tokens up to the next `character`, or to the end.
    pub fn skip_to(&mut self, character: char) {
        while !self.peek(character) && self.skip() {}
    }

    /// The tokens that are left, copied, for what is passed on as it stands.
    pub fn to_stream(self) -> TokenStream {
        self.cursor.token_stream()
    }

    fn advance(&mut self, last: Span, rest: Cursor<'a>) {
        self.last = last;
        self.cursor = rest;
    }
}
