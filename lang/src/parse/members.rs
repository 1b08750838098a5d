//! Members and layers: what stands in the braces of a network or block, and in lists.

use plimsoll_plan::layers;
use proc_macro2::{Delimiter, Span};

use super::{Parser, Tokens};
use crate::ast::{Body, Call, Const, Layer, Member, Name, Place, Target};
use crate::suggest;

/// What a message suggests where no layer could be read.
const EXAMPLES: &str =
    "write a layer such as `conv2d(64, kernel = 3)`, a list `[a, b]`, or `if condition { a } else { b }`";

impl<'r> Parser<'r> {
    /// The braces of a network or block. `consts` takes the network's consts; a block has none.
    pub(super) fn body(&mut self, mut tokens: Tokens, place: Place, mut consts: Option<&mut Vec<Const>>) -> Body {
        let mut body = Body { members: Vec::new(), forward: None, place, incomplete: false };
        while !tokens.at_end() {
            let before = tokens;
            let start = tokens.span();
            let attributes = self.member_attributes(&mut tokens);
            if tokens.at_end() && !attributes.docs.is_empty() {
                let help = "move it before what it is about, or write `// ..`";
                self.report.error(
                    Place { start, end: tokens.last() },
                    "a documentation comment with nothing after it",
                    help,
                );
                break;
            }
            if let (_, Some(place)) = self.visibility(&mut tokens) {
                let help = "leave it out: a const is as visible as the network, and members are known within";
                self.report.error(place, "consts and members have no visibility of their own", help);
            }
            if let Some(span) = tokens.word("const") {
                let item = self.const_item(&mut tokens, span, attributes.docs);
                match (item, &mut consts) {
                    (Some(item), Some(consts)) => consts.push(item),
                    (Some(item), None) => {
                        // Its name would be unknown further on.
                        body.incomplete = true;
                        self.const_in_a_block(Place::from(span).to(&item.name), &item.name);
                    }
                    (None, _) => body.incomplete = true,
                }
            } else if let Some(span) = tokens.word("fn") {
                match self.forward(&mut tokens, span) {
                    Some(forward) if body.forward.is_none() => body.forward = Some(forward),
                    Some(second) => {
                        self.report.error(&second.name, "a second `fn forward`", "keep one: a network has one flow");
                    }
                    None => body.incomplete = true,
                }
                tokens.punct(',');
            } else {
                match self.member(&mut tokens, attributes.frozen) {
                    Some(member) => {
                        if let Some(forward) = &body.forward {
                            self.report.error(
                                member.name.as_ref().map_or(member.layer.place(), Place::from),
                                "a member after `fn forward`",
                                format!("members come first: move it above `fn {}`", forward.name),
                            );
                        }
                        body.incomplete |= matches!(member.layer, Layer::Unknown);
                        body.members.push(member);
                        self.comma(&mut tokens);
                    }
                    None => {
                        body.incomplete = true;
                        tokens.skip_to(',');
                        tokens.punct(',');
                    }
                }
            }
            if tokens.is_at(&before) {
                tokens.skip();
            }
        }
        body
    }

    fn const_in_a_block(&mut self, place: Place, name: &Name) {
        let parameter = name.text.to_lowercase();
        self.report.error(
            place,
            format!("a block has no consts of its own: `{name}`"),
            format!(
                "give the block a parameter with a default, `block Name(.., {parameter} = ..)`, or declare the const in \
                 the network: it is known everywhere"
            ),
        );
    }

    /// `NAME = value;` after `const`.
    fn const_item(&mut self, tokens: &mut Tokens, start: Span, docs: Vec<String>) -> Option<Const> {
        let Some(ident) = tokens.ident() else {
            self.expected::<()>("a name after `const`", "write `const CLASSES = 1000;`", tokens);
            skip_past_semicolon(tokens);
            return None;
        };
        let may_be_an_item = self.may_be_an_item(&ident);
        let name = Name::from(ident.clone());
        if let Some(colon) = tokens.punct(':') {
            let help = format!("leave the type out: `const {name} = ...;`");
            self.report.error(Place::from(colon).to(tokens.span()), "a network's const has no type", help);
            while !tokens.at_end() && !tokens.peek('=') && !tokens.peek(';') {
                tokens.skip();
            }
        }
        let value = if tokens.punct('=').is_some() {
            self.expression(tokens)
        } else {
            self.expected("`=`", &format!("write `const {name} = 1000;`"), tokens)
        };
        if value.is_none() {
            skip_past_semicolon(tokens);
        } else if tokens.punct(';').is_none() {
            let place = Place::from(start).to(tokens.last());
            self.report.error(place, "expected `;` after a const", format!("write `const {name} = ...;`"));
            tokens.punct(',');
        }
        may_be_an_item.then_some(Const { docs, ident, name, value })
    }

    /// `name: layer`, `layer` or `..layer`, its attributes taken already.
    pub(super) fn member(&mut self, tokens: &mut Tokens, frozen: bool) -> Option<Member> {
        let splice = tokens.punct2('.', '.');
        let name = tokens.name_before(':').or_else(|| self.name_without_colon(tokens));
        if let (Some(dots), Some(name)) = (splice, &name) {
            let message = format!("`..` puts a list's members here, each under its own name, but it is named `{name}`");
            self.report.error(Place::from(dots).to(name), message, "leave out either the dots or the name");
        }
        let layer = match self.layer(tokens) {
            Some(layer) => layer,
            // A member whose layer is wrong still has a name that `forward` may use.
            None if name.is_some() => {
                tokens.skip_to(',');
                Layer::Unknown
            }
            None => return None,
        };
        Some(Member { frozen, name, splice, layer, used: false })
    }

    /// `a linear(4)` or `a = linear(4)`, where a colon is missing.
    fn name_without_colon(&mut self, tokens: &mut Tokens) -> Option<Name> {
        let mut ahead = *tokens;
        let ident = ahead.ident()?;
        let place = ahead.span();
        let assigned = ahead.punct('=').is_some();
        if !assigned && ahead.ident().is_none() {
            return None;
        }
        let name = Name::from(ident);
        let is_member = name.text.starts_with(|c: char| c.is_ascii_lowercase()) && !is_known(&name.text);
        if !assigned && !is_member {
            return None;
        }
        tokens.skip();
        if assigned {
            tokens.skip();
        }
        self.report.error(
            if assigned { place } else { name.span },
            format!("expected `:` after the member's name `{name}`"),
            format!("write `{name}: linear(10)`"),
        );
        Some(name)
    }

    /// A layer, list, repetition or choice.
    fn layer(&mut self, tokens: &mut Tokens) -> Option<Layer> {
        if let Some(group) = tokens.group(Delimiter::Bracket) {
            return self.list(group.tokens, group.place);
        }
        let Some(name) = tokens.name() else {
            return self.expected("a layer", EXAMPLES, tokens);
        };
        if name.text == "if" {
            return self.choice(name.span, tokens);
        }
        if tokens.peek_operator() == Some((':', Some(':')))
            || tokens.peek_operator().is_some_and(|(a, b)| a == '.' && b != Some('.'))
        {
            return self.prefixed(name, tokens);
        }
        let mut place = Place::from(&name);
        let mut arguments = Vec::new();
        if let Some(group) = tokens.group(Delimiter::Parenthesis) {
            place = place.to(group.place);
            arguments = self.arguments(group.tokens);
        } else if tokens.peek_group(Delimiter::Bracket) || tokens.peek_group(Delimiter::Brace) {
            let help = format!("arguments stand in parentheses, `{name}(..)`, and members are separated by commas");
            self.expected::<()>(&format!("`(` or `,` after `{name}`"), &help, tokens);
            tokens.skip();
            return Some(Layer::Unknown);
        }
        Some(Layer::Call(Call { name, arguments, place, target: Target::Unknown }))
    }

    /// `nn.Linear(10)` or `crate::Basic(10)`. Takes the whole path.
    fn prefixed(&mut self, first: Name, tokens: &mut Tokens) -> Option<Layer> {
        let start = Place::from(&first);
        let (mut text, mut last) = (first.text.clone(), first);
        loop {
            let separator = match tokens.punct2(':', ':') {
                Some(_) => "::",
                None if tokens.punct('.').is_some() => ".",
                None => break,
            };
            let Some(name) = tokens.name() else { break };
            text = format!("{text}{separator}{name}");
            last = name;
        }
        let place = start.to(tokens.last());
        tokens.group(Delimiter::Parenthesis);
        match suggest::nearest(&last.text, layers::DEFINITIONS.iter().map(|d| d.name)) {
            Some(layer) => {
                self.report.error(place, format!("layers need no prefix: `{text}`"), format!("write `{layer}(..)`"));
            }
            None => {
                let message =
                    format!("`{text}` lies outside of this network, and a macro cannot see Rust items outside of it");
                self.report.error(place, message, format!("declare `block {last}(..) {{ .. }}` in this `network!`"));
            }
        }
        Some(Layer::Unknown)
    }

    /// `[a, b, c]` or `[a; n]`.
    fn list(&mut self, mut inside: Tokens, place: Place) -> Option<Layer> {
        let mut members = Vec::new();
        while !inside.at_end() {
            let attributes = self.member_attributes(&mut inside);
            let Some(member) = self.member(&mut inside, attributes.frozen) else {
                members.push(Member { frozen: false, name: None, splice: None, layer: Layer::Unknown, used: false });
                inside.skip_to(',');
                inside.punct(',');
                continue;
            };
            members.push(member);
            if let Some(semicolon) = inside.punct(';') {
                return self.repetition(members, semicolon, inside, place);
            }
            self.comma(&mut inside);
        }
        Some(Layer::List(members, place))
    }

    /// The count in `[a; n]`.
    fn repetition(
        &mut self,
        mut members: Vec<Member>,
        semicolon: Span,
        mut inside: Tokens,
        place: Place,
    ) -> Option<Layer> {
        let count = self.expression(&mut inside)?;
        if !inside.at_end() {
            return self.expected("`]` after the number of copies", "write `[layer; n]`", &inside);
        }
        let element = members.pop()?;
        if !members.is_empty() {
            let help = "repeat a list, `[[a, b]; n]`, or splice it, `[..[[a, b]; n], c]`";
            self.report.error(semicolon, "`;` repeats one layer, but several stand before it", help);
            return None;
        }
        if let Some(name) = &element.name {
            let message = format!("copies are named by their positions, but this one is named `{name}`");
            self.report.error(name, message, "leave the name out");
        }
        Some(Layer::Repeat(Box::new(element), count, place))
    }

    /// `condition { a } else if ... else { b }` after `if`.
    fn choice(&mut self, start: Span, tokens: &mut Tokens) -> Option<Layer> {
        let mut branches = Vec::new();
        loop {
            let condition = self.expression(tokens)?;
            if let Some(equals) = tokens.punct('=') {
                self.report.error(equals, "`=` does not compare", "write `==`");
                return None;
            }
            let layer = self.branch(tokens)?;
            branches.push((Some(condition), layer));
            if tokens.word("else").is_none() {
                break;
            }
            if tokens.word("if").is_none() {
                branches.push((None, self.branch(tokens)?));
                break;
            }
        }
        let place = Place { start, end: tokens.last() };
        Some(Layer::If(branches, place))
    }

    /// `{ layer }`.
    fn branch(&mut self, tokens: &mut Tokens) -> Option<Layer> {
        let Some(group) = tokens.group(Delimiter::Brace) else {
            return self.expected("`{`", "write `if condition { layer } else { layer }`", tokens);
        };
        let mut inside = group.tokens;
        if inside.at_end() {
            self.report.error(group.place, "expected a layer in the braces", "to do nothing, write `identity`");
            return Some(Layer::Unknown);
        }
        let attributes = self.member_attributes(&mut inside);
        if attributes.frozen {
            self.report.error(group.place, "`#[freeze]` belongs before a member", "put it before the member's name");
        }
        let Some(layer) = self.layer(&mut inside) else {
            return Some(Layer::Unknown);
        };
        inside.punct(',');
        if !inside.at_end() {
            let found = inside.describe();
            let message = format!("a branch is one layer, but {found} follows it");
            self.report.error(inside.span(), message, "put several into a list: `{ [a, b] }`");
        }
        Some(layer)
    }
}

/// Whether a layer has this name, or a keyword of the language.
fn is_known(name: &str) -> bool {
    layers::find(name).is_some() || ["tied", "if", "else", "fn", "const"].contains(&name)
}

/// Takes tokens through the next `;`, unless a `,` comes first.
fn skip_past_semicolon(tokens: &mut Tokens) {
    while !tokens.at_end() && !tokens.peek(',') {
        if tokens.punct(';').is_some() {
            return;
        }
        tokens.skip();
    }
    tokens.punct(',');
}
