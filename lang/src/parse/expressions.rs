//! Expressions: numbers, names, calls, method chains, and operators with Rust's precedence.

use plimsoll_plan::layers;
use proc_macro2::{Delimiter, Span};

use super::{Parser, Tokens};
use crate::ast::{Argument, Call, Expr, ExprKind, Name, Operator, Place, Reference, Target};
use crate::{limits, suggest};

/// What a message suggests where no expression could be read.
const EXAMPLES: &str = "write a number, a name, or an expression such as `2 * width + 1`";

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn expression(&mut self, tokens: &mut Tokens) -> Option<Expr> {
        self.operations(tokens, 1)
    }

    /// Operands joined by operators that bind at least as strongly as `least`.
    fn operations(&mut self, tokens: &mut Tokens, least: u8) -> Option<Expr> {
        let mut left = self.unary(tokens)?;
        while let Some((operator, characters)) = self.next_operator(tokens)? {
            let precedence = operator.precedence();
            if precedence < least {
                break;
            }
            let start = Place::from(tokens.span());
            for _ in 0..characters {
                tokens.skip();
            }
            let operator_place = start.to(tokens.last());
            let right = self.operations(tokens, precedence + 1)?;
            let place = left.place.to(right.place);
            match &mut left.kind {
                ExprKind::Operations(_, rest) if rest[0].0.precedence() == precedence => {
                    if precedence == Operator::Less.precedence() {
                        self.report.error(
                            operator_place,
                            format!("comparisons do not chain: `{}` follows another one", operator.text()),
                            "compare two at a time: `a < b && b < c`",
                        );
                        return None;
                    }
                    rest.push((operator, operator_place, right));
                    left.place = place;
                }
                _ => {
                    left = Expr {
                        kind: ExprKind::Operations(Box::new(left), vec![(operator, operator_place, right)]),
                        place,
                    }
                }
            }
        }
        Some(left)
    }

    /// The operator that comes next. `None` after one that this language does not have.
    fn next_operator(&mut self, tokens: &mut Tokens) -> Option<Option<(Operator, usize)>> {
        let numbers = "numbers have `+`, `-`, `*`, `/` and `%`";
        let (text, help) = match tokens.peek_operator() {
            Some(('*', Some('*'))) => ("**", "write the product out: `2 * 2 * 2`"),
            Some(('^', _)) => ("^", "for a power, write the product out: `2 * 2 * 2`"),
            Some(('<', Some('<'))) => ("<<", numbers),
            Some(('>', Some('>'))) => (">>", numbers),
            Some(('@', _)) => {
                ("@", "`linear` multiplies by a learned matrix; products of two values are not yet in this version")
            }
            _ => {
                if let Some(start) = tokens.word("as") {
                    let last = tokens.name().map_or(start, |name| name.span);
                    let place = Place { start, end: last };
                    self.report.error(place, "numbers have no Rust types here", "leave `as` and the type out");
                }
                for (word, operator) in [("and", Operator::And), ("or", Operator::Or)] {
                    if tokens.peek_word(word) {
                        let message = format!("`{word}` is written `{}`", operator.text());
                        self.report.error(tokens.span(), message, format!("write `a {} b`", operator.text()));
                        return Some(Some((operator, 1)));
                    }
                }
                return Some(operator(tokens));
            }
        };
        self.report.error(tokens.span(), format!("there is no operator `{text}`"), help);
        None
    }

    /// Signs and what they stand before.
    fn unary(&mut self, tokens: &mut Tokens) -> Option<Expr> {
        let mut signs = Vec::new();
        loop {
            if let Some(span) = tokens.punct('-') {
                signs.push((span, '-'));
            } else if let Some(span) = tokens.punct('!') {
                signs.push((span, '!'));
            } else if tokens.peek_word("not") && self.is_not(*tokens) {
                self.report.error(tokens.span(), "`not` is written `!`", "write `!(a == b)`, or `a != b`");
                tokens.skip();
            } else {
                break;
            }
        }
        if signs.len() > limits::NESTING {
            self.report.error(signs[0].0, format!("{} signs in a row", signs.len()), "one is enough");
            return None;
        }
        let mut expr = self.postfix(tokens)?;
        for (span, sign) in signs.into_iter().rev() {
            let place = Place::from(span).to(expr.place);
            let inner = Box::new(expr);
            let kind = if sign == '-' { ExprKind::Negative(inner) } else { ExprKind::Not(inner) };
            expr = Expr { kind, place };
        }
        Some(expr)
    }

    /// Whether `not` stands before an operand, and is no name.
    fn is_not(&self, mut tokens: Tokens) -> bool {
        tokens.skip();
        tokens.ident().is_some() || tokens.literal().is_some()
    }

    /// An operand with the methods called on it: `x.conv1().relu()`.
    fn postfix(&mut self, tokens: &mut Tokens) -> Option<Expr> {
        let receiver = self.operand(tokens)?;
        if let ExprKind::Name(name, _) = &receiver.kind
            && let Some(index) = tokens.group(Delimiter::Bracket)
        {
            let help = format!("`{name}(x)` runs a whole list; what is to be called alone is a member of its own");
            self.report.error(receiver.place.to(index.place), "lists and values have no index", help);
            tokens.group(Delimiter::Parenthesis);
            return None;
        }
        if !tokens.peek('.') || tokens.peek_operator() == Some(('.', Some('.'))) {
            return Some(receiver);
        }
        let start = receiver.place;
        let mut path = match &receiver.kind {
            ExprKind::Name(text, _) => vec![Name { text: text.clone(), span: start.start }],
            _ => Vec::new(),
        };
        let mut calls = Vec::new();
        while tokens.punct('.').is_some() {
            let Some(name) = tokens.name() else {
                if let Some(position) = tokens.literal() {
                    let help = "name the member in its list, `[embed: linear(10)]`, and write the name";
                    self.report.error(position.span(), "members are known by names, not by positions", help);
                    return None;
                }
                return self.expected("a name after `.`", "call a layer or member: `x.relu()`", tokens);
            };
            if let Some(group) = tokens.group(Delimiter::Parenthesis) {
                if path.len() > 1 {
                    return self.no_fields(&path[1]);
                }
                let place = Place { start: name.span, end: group.place.end };
                let arguments = self.arguments(group.tokens);
                calls.push(Call { name, arguments, place, target: Target::Unknown });
            } else if calls.is_empty() && !path.is_empty() {
                path.push(name);
            } else {
                return self.no_fields(&name);
            }
        }
        let place = start.to(tokens.last());
        if path.len() > 1 {
            return Some(Expr { kind: ExprKind::Path(path), place });
        }
        Some(Expr { kind: ExprKind::Chain(Box::new(receiver), calls), place })
    }

    fn no_fields<T>(&mut self, name: &Name) -> Option<T> {
        let message = format!("a value has no field `{name}`");
        self.report.error(name, message, format!("to call the layer or member, write `.{name}()`"));
        None
    }

    /// A literal, a name, a call, or an expression in brackets.
    fn operand(&mut self, tokens: &mut Tokens) -> Option<Expr> {
        // What a `macro_rules!` macro passed on as one expression: it binds as if in parentheses.
        if tokens.peek_group(Delimiter::None)
            && let Some(group) = tokens.group(Delimiter::None)
        {
            let mut inside = group.tokens;
            let expr = self.expression(&mut inside)?;
            if !inside.at_end() {
                return self.expected("the end of the expression", EXAMPLES, &inside);
            }
            return Some(expr);
        }
        if let Some(literal) = tokens.literal() {
            let place = literal.span().into();
            return Some(Expr { kind: self.literal(literal), place });
        }
        if let Some(name) = tokens.name() {
            return self.named(name, tokens);
        }
        if let Some(group) = tokens.group(Delimiter::Parenthesis) {
            return self.parenthesized(group.tokens, group.place);
        }
        if let Some(group) = tokens.group(Delimiter::Bracket) {
            let mut inside = group.tokens;
            let items = self.separated(&mut inside, |parser, tokens| parser.expression(tokens));
            return Some(Expr { kind: ExprKind::List(items), place: group.place });
        }
        self.expected("an expression", EXAMPLES, tokens)
    }

    /// What starts with a name.
    fn named(&mut self, name: Name, tokens: &mut Tokens) -> Option<Expr> {
        let place = Place::from(&name);
        if tokens.peek_operator() == Some((':', Some(':'))) {
            return self.outside(name, tokens);
        }
        if let Some(group) = tokens.group(Delimiter::Parenthesis) {
            let place = place.to(group.place);
            let arguments = self.arguments(group.tokens);
            let call = Call { name, arguments, place, target: Target::Unknown };
            return Some(Expr { kind: ExprKind::Call(call), place });
        }
        let kind = match name.text.as_str() {
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "if" => {
                let help = "choose where members are declared, `act: if deep { gelu } else { relu }`; numbers have `min` and `max`";
                self.report.error(place, "`if` chooses a layer, not a number or value", help);
                return None;
            }
            _ => ExprKind::Name(name.text, Reference::Unknown),
        };
        Some(Expr { kind, place })
    }

    /// `crate::N`: nothing that this macro could see. Takes the whole path.
    pub(super) fn outside<T>(&mut self, first: Name, tokens: &mut Tokens) -> Option<T> {
        let start = Place::from(&first);
        let mut text = first.text.clone();
        let mut last = first;
        while tokens.punct2(':', ':').is_some() {
            let Some(name) = tokens.name() else { break };
            text = format!("{text}::{name}");
            last = name;
        }
        let place = start.to(tokens.last());
        let called = tokens.group(Delimiter::Parenthesis).is_some();
        if called && let Some(layer) = suggest::nearest(&last.text, layers::DEFINITIONS.iter().map(|d| d.name)) {
            self.report.error(place, format!("layers need no prefix: `{text}`"), format!("write `{layer}(..)`"));
            return None;
        }
        let network = self.network.as_deref().unwrap_or("Network");
        self.report.error(
            place,
            format!("`{text}` lies outside of this network, and a macro cannot see Rust items outside of it"),
            format!("declare `const {last} = ...;` in the network, which exports it as `{network}::{last}`"),
        );
        None
    }

    /// `(a)` or a tuple `(a, b)`.
    fn parenthesized(&mut self, mut inside: Tokens, place: Place) -> Option<Expr> {
        if inside.at_end() {
            self.report.error(place, "expected an expression, found `()`", EXAMPLES);
            return None;
        }
        let first = self.expression(&mut inside)?;
        if inside.at_end() {
            return Some(Expr { kind: first.kind, place });
        }
        if !inside.peek(',') {
            return self.expected("`)` or an operator", EXAMPLES, &inside);
        }
        self.comma(&mut inside);
        let mut items = vec![first];
        items.extend(self.separated(&mut inside, |parser, tokens| parser.expression(tokens)));
        Some(Expr { kind: ExprKind::List(items), place })
    }

    /// The arguments between a call's parentheses.
    pub(super) fn arguments(&mut self, mut inside: Tokens) -> Vec<Argument> {
        self.separated(&mut inside, |parser, tokens| {
            parser.no_documentation(tokens);
            let name = tokens.name_before('=');
            let value = match parser.expression(tokens) {
                Some(value) => value,
                // The argument was there, only wrong: it is not missing as well.
                None => {
                    let place = Span::call_site().into();
                    tokens.skip_to(',');
                    Expr { kind: ExprKind::Unknown, place }
                }
            };
            Some(Argument { name, value })
        })
    }
}

/// The operator that comes next, and how many characters it has.
fn operator(tokens: &Tokens) -> Option<(Operator, usize)> {
    Some(match tokens.peek_operator()? {
        ('|', Some('|')) => (Operator::Or, 2),
        ('&', Some('&')) => (Operator::And, 2),
        ('=', Some('=')) => (Operator::Equal, 2),
        ('!', Some('=')) => (Operator::NotEqual, 2),
        ('<', Some('=')) => (Operator::LessOrEqual, 2),
        ('>', Some('=')) => (Operator::GreaterOrEqual, 2),
        ('<', _) => (Operator::Less, 1),
        ('>', _) => (Operator::Greater, 1),
        ('+', _) => (Operator::Add, 1),
        ('-', _) => (Operator::Subtract, 1),
        ('*', _) => (Operator::Multiply, 1),
        ('/', _) => (Operator::Divide, 1),
        ('%', _) => (Operator::Remainder, 1),
        _ => return None,
    })
}
