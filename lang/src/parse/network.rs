//! The outermost level: one `struct`, and the blocks it is made of.

use plimsoll_plan::shape::DType;
use proc_macro2::{Delimiter, Ident, Span, TokenStream};

use super::attributes::NetworkAttributes;
use super::{Parser, Tokens};
use crate::ast::{Block, Body, Const, Expr, ExprKind, Input, Name, Network, Parameter, Place, Source};
use crate::suggest;

/// The whole form, for messages.
const FORM: &str = "write `pub struct Net(image: f32[3, 32, 32]) { flatten, linear(10) }`";

impl Parser<'_> {
    /// Everything.
    pub(super) fn source(&mut self, tokens: &mut Tokens) -> Source {
        let mut source = Source::default();
        while !tokens.at_end() {
            let before = *tokens;
            let attributes = self.network_attributes(tokens);
            let (visibility, visible) = self.visibility(tokens);
            if tokens.word("struct").is_some() {
                match self.network(tokens, attributes, visibility) {
                    Some(network) if source.network.is_none() => source.network = Some(network),
                    Some(second) => {
                        let message = format!("a second network, `{}`", second.name);
                        self.report.error(&second.name, message, "give each network a `network!` of its own");
                    }
                    None => {}
                }
            } else if tokens.word("block").is_some() {
                if let Some(place) = visible {
                    let help = "leave it out: a block is known in its own `network!` only";
                    self.report.error(place, "a block has no visibility", help);
                }
                self.no_network_attributes(&attributes);
                source.blocks.extend(self.block(tokens));
            } else {
                self.expected::<()>("`struct` or `block`", FORM, tokens);
                while !tokens.at_end() && !tokens.peek_word("struct") && !tokens.peek_word("block") && !tokens.peek('#')
                {
                    tokens.skip();
                }
            }
            if tokens.is_at(&before) {
                tokens.skip();
            }
        }
        if source.network.is_none() && self.report.is_empty() {
            self.report.error(Span::call_site(), "there is no network here", FORM);
        }
        source
    }

    fn no_network_attributes(&mut self, attributes: &NetworkAttributes) {
        let settings = attributes.train.as_ref().or(attributes.infer.as_ref()).map(|s| s.place);
        let place = settings.or(attributes.budget.as_ref().map(|budget| budget.place));
        let place = place.or(attributes.without.as_ref().map(|without| without.place));
        if let Some(place) = place {
            self.report.error(place, "this attribute belongs on the network, not on a block", "move it above `struct`");
        } else if attributes.docs.len() < attributes.passed_on.len()
            && let Some(place) = attributes.first
        {
            self.report.error(place, "a block takes no attributes but documentation", "move it above `struct`");
        }
    }

    /// `pub`, `pub(crate)` or nothing.
    pub(super) fn visibility(&mut self, tokens: &mut Tokens) -> (TokenStream, Option<Place>) {
        let mut scope = *tokens;
        let Some(start) = scope.word("pub") else {
            return (TokenStream::new(), None);
        };
        let before = *tokens;
        tokens.skip();
        let mut place = Place::from(start);
        if let Some(group) = tokens.group(Delimiter::Parenthesis) {
            place = place.to(group.place);
        }
        let mut stream = TokenStream::new();
        let mut rest = before;
        while !rest.is_at(tokens) {
            let Some(token) = rest.token() else { break };
            stream.extend([token]);
        }
        (stream, Some(place))
    }

    /// `Name(inputs) { ... }` after `struct`.
    fn network(
        &mut self,
        tokens: &mut Tokens,
        attributes: NetworkAttributes,
        visibility: TokenStream,
    ) -> Option<Network> {
        let Some(ident) = tokens.ident() else {
            return self.expected("the network's name", FORM, tokens);
        };
        let name = Name::from(ident.clone());
        let may_be_an_item = self.may_be_an_item(&ident);
        self.network = Some(name.text.clone());
        // Their names are known, only not what they are.
        let generics =
            self.no_generics(tokens).into_iter().filter(|ident| syn::parse_str::<Ident>(&ident.to_string()).is_ok());
        let mut consts: Vec<Const> =
            generics.map(|ident| Const { docs: Vec::new(), name: ident.clone().into(), ident, value: None }).collect();
        let before = self.report.mistakes().len();
        let inputs = match tokens.group(Delimiter::Parenthesis) {
            Some(group) => {
                let mut inside = group.tokens;
                if inside.at_end() {
                    self.report.error(group.place, "the network has no input", FORM);
                }
                self.separated(&mut inside, |parser, tokens| parser.input(tokens))
            }
            None => {
                self.report.error(&name, format!("`{name}` declares no input"), FORM);
                Vec::new()
            }
        };
        let inputs_known = self.report.mistakes().len() == before;
        let body = self.braces(tokens, |parser, tokens, place| parser.body(tokens, place, Some(&mut consts)));
        if !may_be_an_item {
            return None;
        }
        let NetworkAttributes { passed_on, docs, train, infer, budget, without, .. } = attributes;
        Some(Network {
            attributes: passed_on,
            docs,
            train,
            infer,
            budget,
            without,
            visibility,
            ident,
            name,
            inputs,
            inputs_known,
            consts,
            body,
        })
    }

    /// `Name(parameters) { ... }` after `block`.
    fn block(&mut self, tokens: &mut Tokens) -> Option<Block> {
        let form = "write `block Name(channels, stride = 1) { ... }`";
        let Some(name) = tokens.name() else {
            return self.expected("the block's name", form, tokens);
        };
        let before = self.report.mistakes().len();
        let generics = self.no_generics(tokens).into_iter();
        let mut parameters: Vec<Parameter> =
            generics.map(|ident| Parameter { name: ident.into(), default: None }).collect();
        if let Some(group) = tokens.group(Delimiter::Parenthesis) {
            let mut inside = group.tokens;
            parameters.extend(self.separated(&mut inside, |parser, tokens| parser.parameter(tokens)));
        }
        let parameters_known = self.report.mistakes().len() == before;
        let body = self.braces(tokens, |parser, tokens, place| parser.body(tokens, place, None));
        Some(Block { name, parameters, parameters_known, body, used: false })
    }

    fn braces<'a>(&mut self, tokens: &mut Tokens<'a>, body: impl FnOnce(&mut Self, Tokens<'a>, Place) -> Body) -> Body {
        match tokens.group(Delimiter::Brace) {
            Some(group) => body(self, group.tokens, group.place),
            None => {
                // One error is enough where the source just ends.
                if !tokens.at_end() || self.report.is_empty() {
                    self.expected::<()>("`{` and the layers", FORM, tokens);
                }
                Body { members: Vec::new(), forward: None, place: tokens.span().into(), incomplete: true }
            }
        }
    }

    /// Reports `<const N: usize>` and gives its names.
    fn no_generics(&mut self, tokens: &mut Tokens) -> Vec<Ident> {
        let mut names = Vec::new();
        if tokens.peek('<') {
            let help = "sizes are `const`s of the network or parameters of a block: `block Basic(channels)`";
            self.report.error(tokens.span(), "networks and blocks have no generic parameters", help);
            while !tokens.at_end() && !tokens.peek_group(Delimiter::Parenthesis) && !tokens.peek_group(Delimiter::Brace)
            {
                let starts = tokens.punct('<').is_some() || tokens.punct(',').is_some();
                tokens.word("const");
                match tokens.ident() {
                    Some(name) if starts => names.push(name),
                    Some(_) => {}
                    None => {
                        tokens.skip();
                    }
                }
            }
        }
        names
    }

    /// `channels` or `stride = 1`.
    fn parameter(&mut self, tokens: &mut Tokens) -> Option<Parameter> {
        self.no_documentation(tokens);
        let Some(name) = tokens.name() else {
            return self.expected(
                "the name of a parameter",
                "write `block Name(channels, stride = 1) { ... }`",
                tokens,
            );
        };
        if tokens.peek(':') {
            let help = format!("leave the type out: `{name}`");
            self.report.error(tokens.span(), "a block's parameters have no types", help);
            while !tokens.at_end() && !tokens.peek('=') && !tokens.peek(',') {
                tokens.skip();
            }
        }
        let default = match tokens.punct('=') {
            Some(_) => Some(self.expression(tokens)?),
            None => None,
        };
        Some(Parameter { name, default })
    }

    /// `image: f32[3, 224, 224]`.
    fn input(&mut self, tokens: &mut Tokens) -> Option<Input> {
        let form = "write `image: f32[3, 224, 224]`, the sizes without the batch";
        self.no_documentation(tokens);
        let Some(name) = tokens.name_before(':') else {
            return self.expected("an input's name and `:`", form, tokens);
        };
        let Some(dtype) = tokens.name() else {
            return self.expected("the input's element type", form, tokens);
        };
        let known = DType::NAMES.iter().find(|(name, _)| *name == dtype.text).map(|(_, dtype)| *dtype);
        if known.is_none() {
            self.unknown_dtype(&dtype);
        }
        let Some(group) = tokens.group(Delimiter::Bracket) else {
            return self.expected("`[` and the input's sizes", form, tokens);
        };
        let mut inside = group.tokens;
        let shape = self.separated(&mut inside, |parser, tokens| {
            parser.expression(tokens).or_else(|| {
                tokens.skip_to(',');
                Some(Expr { kind: ExprKind::Unknown, place: tokens.last().into() })
            })
        });
        let place = Place::from(&name).to(group.place);
        Some(Input { name, dtype: known, shape, place })
    }

    fn unknown_dtype(&mut self, dtype: &Name) {
        let remedy = match dtype.text.as_str() {
            "f64" | "double" | "float" | "float32" => "networks compute in f32: write `f32`",
            "f16" | "bf16" | "half" => "half precision is not yet in this version: write `f32`",
            "i64" | "long" | "int64" | "u32" | "u64" | "usize" | "int32" => "indices are 32 bits wide: write `i32`",
            "i8" | "bool" | "byte" | "uint8" => "bytes are `u8`",
            _ => "inputs are `f32`, `i32` or `u8`",
        };
        let help = suggest::help(&dtype.text, [], remedy);
        self.report.error(dtype, format!("unknown element type `{dtype}`"), help);
    }
}
