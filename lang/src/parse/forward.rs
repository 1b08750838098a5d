//! `fn forward(x) { let y = ...; tail }`.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Span};

use super::{Parser, Tokens};
use crate::ast::{Expr, ExprKind, Forward, ForwardInput, Let, Name, Operator, Place, Reference};

/// The whole form, for messages.
const FORM: &str = "write `fn forward(x) { let y = x.conv1(); relu(y) }`";

impl Parser<'_> {
    /// What follows `fn`.
    pub(super) fn forward(&mut self, tokens: &mut Tokens, start: Span) -> Option<Forward> {
        let Some(name) = tokens.name() else {
            return self.no_function("`forward` after `fn`", tokens);
        };
        if name.text != "forward" {
            let message = format!("a network's only function is `forward`, not `{name}`");
            self.report.error(&name, message, "for parts of the flow, declare a `block` with a `forward` of its own");
        }
        let Some(inputs) = tokens.group(Delimiter::Parenthesis) else {
            return self.no_function("`(` and the inputs", tokens);
        };
        let before = self.report.mistakes().len();
        let mut inside = inputs.tokens;
        let inputs: Vec<ForwardInput> = self.separated(&mut inside, |parser, tokens| {
            if parser.no_self(tokens) {
                return None;
            }
            let Some(name) = tokens.name() else {
                return parser.expected("the name of an input", FORM, tokens);
            };
            if tokens.peek(':') {
                let help = format!("leave the type out: `{name}`");
                parser.report.error(
                    tokens.span(),
                    "inputs of `forward` have no types: they follow from the call",
                    help,
                );
                tokens.skip_to(',');
            }
            Some(ForwardInput { name, used: false })
        });
        let inputs_known = self.report.mistakes().len() == before && all_different(&inputs);
        if tokens.peek('-') {
            let help = "leave it out: the output's shape is inferred";
            self.report.error(tokens.span(), "`forward` has no declared result", help);
            while !tokens.at_end() && !tokens.peek_group(Delimiter::Brace) {
                tokens.skip();
            }
        }
        let Some(body) = tokens.group(Delimiter::Brace) else {
            return self.no_function("`{`", tokens);
        };
        let header = Place { start, end: name.span };
        let mut inside = body.tokens;
        let before = self.report.mistakes().len();
        let (lets, output) = self.statements(&mut inside, header);
        let incomplete = self.report.mistakes().len() > before;
        if name.text != "forward" {
            return None;
        }
        Some(Forward { name, inputs, inputs_known, lets, output, incomplete })
    }

    /// Reports what is missing in a function, and skips its body.
    fn no_function<T>(&mut self, what: &str, tokens: &mut Tokens) -> Option<T> {
        self.expected::<()>(what, FORM, tokens);
        while tokens.group(Delimiter::Brace).is_none() && tokens.skip() {}
        None
    }

    /// `let`s, and the expression at the end.
    fn statements(&mut self, tokens: &mut Tokens, header: Place) -> (Vec<Let>, Option<Expr>) {
        let mut lets = Vec::new();
        loop {
            if tokens.word("let").is_some() {
                match self.let_statement(tokens) {
                    Some(statement) => lets.push(statement),
                    None => {
                        tokens.skip_to(';');
                        tokens.punct(';');
                    }
                }
            } else if let Some((name, operator)) = self.assigned(tokens) {
                let mut value = self.expression(tokens);
                // `y += x` uses the `y` before it.
                if let (Some(operator), Some(right)) = (operator, value.take_if(|_| operator.is_some())) {
                    let place = Place::from(&name).to(right.place);
                    let left =
                        Expr { kind: ExprKind::Name(name.text.clone(), Reference::Unknown), place: name.span.into() };
                    let terms = vec![(operator, Place::from(&name), right)];
                    value = Some(Expr { kind: ExprKind::Operations(Box::new(left), terms), place });
                }
                lets.push(self.bound(tokens, name, value));
            } else {
                break;
            }
        }
        if ["for", "while", "loop"].iter().any(|word| tokens.peek_word(word)) {
            let help = "a list or repetition runs its layers in order: `layers(x)`; what is called again shares its parameters";
            self.report.error(tokens.span(), "`forward` has no loops", help);
            return (lets, None);
        }
        if tokens.at_end() {
            let help = "end it with an expression that no `;` follows, such as `relu(y)`";
            self.report.error(header, "`forward` returns nothing", help);
            return (lets, None);
        }
        if tokens.word("return").is_some() {
            let help = "leave `return` and `;` out: the last expression is the result";
            self.report.error(tokens.last(), "`return` is not needed", help);
            return (lets, None);
        }
        let output = self.expression(tokens);
        if let Some(Expr { kind: ExprKind::List(_), place }) = output {
            self.report.error(place, "`forward` returns one value", "join several: `concat(a, b)`");
            return (lets, None);
        }
        if output.is_some() && !tokens.at_end() {
            if let Some(semicolon) = tokens.punct(';') {
                if tokens.at_end() {
                    self.report.error(
                        semicolon,
                        "`forward` returns nothing: `;` follows its last expression",
                        "remove the `;`",
                    );
                } else {
                    self.report.error(semicolon, "the value before `;` is not used", "bind it: `let y = ...;`");
                }
            } else {
                self.expected::<()>("an operator, `.` or the end of `forward`", "`let y = ...;` ends with `;`", tokens);
            }
            return (lets, None);
        }
        (lets, output)
    }

    /// `self` or `&self` among the inputs.
    fn no_self(&mut self, tokens: &mut Tokens) -> bool {
        let mut ahead = *tokens;
        let start = ahead.punct('&');
        ahead.word("mut");
        let Some(span) = ahead.word("self") else { return false };
        *tokens = ahead;
        let place = Place { start: start.unwrap_or(span), end: span };
        let help = "leave it out: members are known by their names, `fc1(x)` or `x.fc1()`";
        self.report.error(place, "`forward` takes no `self`", help);
        true
    }

    /// `name =` or `name +=` without `let`.
    fn assigned(&mut self, tokens: &mut Tokens) -> Option<(Name, Option<Operator>)> {
        let mut ahead = *tokens;
        let name = ahead.name()?;
        let mut operator = None;
        let help = match ahead.peek_operator()? {
            ('=', second) if second != Some('=') => {
                ahead.skip();
                format!("values never change: write `let {name} = ..;`, which may take the same name again")
            }
            (sign @ ('+' | '-' | '*' | '/'), Some('=')) => {
                ahead.skip();
                ahead.skip();
                operator = Some(match sign {
                    '+' => Operator::Add,
                    '-' => Operator::Subtract,
                    '*' => Operator::Multiply,
                    _ => Operator::Divide,
                });
                format!("values never change: write `let {name} = {name} {sign} ..;`")
            }
            _ => return None,
        };
        *tokens = ahead;
        self.report.error(&name, format!("`let` is missing before `{name}`"), help);
        Some((name, operator))
    }

    /// `name = value;` after `let`.
    fn let_statement(&mut self, tokens: &mut Tokens) -> Option<Let> {
        if let Some(span) = tokens.word("mut") {
            self.report.error(
                span,
                "values never change, so `mut` means nothing",
                "leave it out; a later `let` may take the same name",
            );
        }
        let Some(name) = tokens.name() else {
            return self.expected("a name after `let`", FORM, tokens);
        };
        if tokens.peek(':') {
            self.report.error(
                tokens.span(),
                "`let` has no type here: the shape is inferred",
                format!("write `let {name} = ...;`"),
            );
            while !tokens.at_end() && !tokens.peek('=') && !tokens.peek(';') {
                tokens.skip();
            }
        }
        let value = if tokens.punct('=').is_some() {
            self.expression(tokens)
        } else {
            self.expected("`=`", &format!("write `let {name} = ...;`"), tokens)
        };
        Some(self.bound(tokens, name, value))
    }

    /// The end of a `let`.
    fn bound(&mut self, tokens: &mut Tokens, name: Name, value: Option<Expr>) -> Let {
        let value = match value {
            Some(value) => value,
            // The name is known, only not what it is.
            None => {
                tokens.skip_to(';');
                Expr { kind: ExprKind::Unknown, place: Place::from(&name) }
            }
        };
        if tokens.punct(';').is_none() {
            self.expected::<()>("`;` after `let`", FORM, tokens);
            let mut ahead = *tokens;
            if ahead.ident().is_none() {
                tokens.skip_to(';');
                tokens.punct(';');
            }
        }
        Let { name, value, used: false }
    }
}

fn all_different(inputs: &[ForwardInput]) -> bool {
    let mut seen = HashSet::new();
    inputs.iter().all(|input| seen.insert(&input.name.text))
}
