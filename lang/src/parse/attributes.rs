//! Attributes: `#[train(...)]`, `#[infer(...)]`, `#[budget(...)]` and `#[without(...)]` on the network, `#[freeze]` on a
//! member, documentation comments, and Rust's own attributes, which are passed on.

use plimsoll_plan::strategy::Saving;
use plimsoll_plan::units::{UNITS, Units};
use proc_macro2::{Delimiter, Group as TokenGroup, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use syn::Lit;

use super::tokens::Group;
use super::{Parser, Tokens};
use crate::ast::{Amount, Budget, Name, Place, Settings, Without};
use crate::suggest;

/// Attributes of the language that may stand on a network.
const NETWORK_ATTRIBUTES: &[&str] = &["train", "infer", "budget", "without"];

/// Rust's attributes that mean something on the generated type.
const RUST_ATTRIBUTES: &[&str] = &[
    "allow",
    "cfg",
    "cfg_attr",
    "deny",
    "deprecated",
    "derive",
    "doc",
    "expect",
    "forbid",
    "must_use",
    "non_exhaustive",
    "warn",
];

/// What `#[budget]` takes, for messages.
const BUDGET_FORMS: &str = "write `#[budget(12 GB)]`, `#[budget(train = 12 GB, infer = 1 GB)]`, and `reserve = 600 MB` or `recompute` beside them if you like";

/// The attributes before a network.
#[derive(Default)]
pub(super) struct NetworkAttributes {
    pub passed_on: Vec<TokenStream>,
    pub docs: Vec<String>,
    pub train: Option<Settings>,
    pub infer: Option<Settings>,
    pub budget: Option<Budget>,
    pub without: Option<Without>,
    /// The first one, if there is any.
    pub first: Option<Place>,
}

/// The attributes before a member, const or block.
#[derive(Default)]
pub(super) struct MemberAttributes {
    pub frozen: bool,
    pub docs: Vec<String>,
}

impl Parser<'_> {
    /// Attributes of a network.
    pub(super) fn network_attributes(&mut self, tokens: &mut Tokens) -> NetworkAttributes {
        let mut found = NetworkAttributes::default();
        while let Some((name, mut attribute)) = self.attribute(tokens) {
            let whole = Place::from(&name).to(attribute.last);
            self.not_inner(&attribute);
            found.first.get_or_insert(whole);
            match name.text.as_str() {
                "doc" => {
                    found.docs.extend(doc_text(attribute.inside));
                    found.passed_on.push(attribute.whole());
                }
                "train" => {
                    let settings = self.settings(name, &mut attribute.inside);
                    self.only_one(&found.train, &settings);
                    found.train = found.train.or(settings);
                }
                "infer" => {
                    let settings = self.settings(name, &mut attribute.inside);
                    self.only_one(&found.infer, &settings);
                    found.infer = found.infer.or(settings);
                }
                "budget" => {
                    let budget = self.budget(&name, &mut attribute.inside);
                    if found.budget.is_some() && budget.is_some() {
                        let help = "declare both in one: `#[budget(train = 12 GB, infer = 1 GB)]`";
                        self.report.error(&name, "a second `#[budget]`", help);
                    }
                    found.budget = found.budget.or(budget);
                }
                "without" => {
                    let without = self.without(&name, &mut attribute.inside);
                    if found.without.is_some() && without.is_some() {
                        self.report.error(&name, "a second `#[without]`", "put all names into one");
                    }
                    found.without = found.without.or(without);
                }
                "precision" => {
                    let message = "`#[precision]` is not yet in this version";
                    self.report.error(whole, message, "leave it out: networks compute in f32");
                }
                "freeze" => {
                    let message = "`#[freeze]` belongs on a member, not on the network";
                    let help = "leave `#[train]` out for a network that is only for inference";
                    self.report.error(whole, message, help);
                }
                text if RUST_ATTRIBUTES.contains(&text) => found.passed_on.push(attribute.whole()),
                text => {
                    let known = NETWORK_ATTRIBUTES.iter().chain(RUST_ATTRIBUTES).copied();
                    let help = suggest::help(
                        text,
                        known,
                        "a network takes `#[train]`, `#[infer]`, `#[budget]`, `#[without]`, documentation and Rust's lints and derives",
                    );
                    self.report.error(&name, format!("unknown attribute `{text}`"), help);
                }
            }
        }
        found
    }

    /// Attributes of anything but a network.
    pub(super) fn member_attributes(&mut self, tokens: &mut Tokens) -> MemberAttributes {
        let mut found = MemberAttributes::default();
        while let Some((name, attribute)) = self.attribute(tokens) {
            let whole = Place::from(&name).to(attribute.last);
            if !["train", "infer", "budget", "without", "precision"].contains(&name.text.as_str()) {
                self.not_inner(&attribute);
            }
            match name.text.as_str() {
                "doc" => found.docs.extend(doc_text(attribute.inside)),
                "freeze" => {
                    found.frozen = true;
                    if !attribute.inside.at_end() {
                        let message = "`#[freeze]` takes no arguments";
                        self.report.error(whole, message, "write `#[freeze]` alone before the member");
                    }
                }
                text @ ("train" | "infer" | "budget" | "without" | "precision") => {
                    let message = format!("`#[{text}]` belongs on the network, not here");
                    self.report.error(whole, message, "move it above `struct`");
                }
                text => {
                    let otherwise = "`#[freeze]` is the only attribute here, beside documentation";
                    let help = match text {
                        "frozen" | "no_grad" | "requires_grad" => "did you mean `freeze`?".to_string(),
                        text => suggest::help(text, ["freeze"], otherwise),
                    };
                    self.report.error(&name, format!("unknown attribute `{text}`"), help);
                }
            }
        }
        found
    }

    /// Reports documentation where none can be, and takes it.
    pub(super) fn no_documentation(&mut self, tokens: &mut Tokens) {
        let mut ahead = *tokens;
        let mut first = true;
        while let Some(hash) = ahead.punct('#') {
            let Some(group) = ahead.group(Delimiter::Bracket) else { return };
            if !group.tokens.peek_word("doc") {
                return;
            }
            if first {
                let place = Place::from(hash).to(group.place);
                let help = "write it before the network, a const, a member or a block, or as `// ..`";
                self.report.error(place, "a documentation comment can't stand here", help);
            }
            first = false;
            *tokens = ahead;
        }
    }

    /// `#[name ...]`: the name, and what follows it.
    fn attribute<'a>(&mut self, tokens: &mut Tokens<'a>) -> Option<(Name, Attribute<'a>)> {
        loop {
            let hash = tokens.punct('#')?;
            let bang = tokens.punct('!');
            let Some(Group { tokens: mut inside, place }) = tokens.group(Delimiter::Bracket) else {
                self.expected::<()>("`[` after `#`", "attributes look like `#[budget(8 MB)]`", tokens);
                continue;
            };
            let content = inside;
            let Some(name) = inside.name() else {
                self.expected::<()>("the attribute's name", "attributes look like `#[budget(8 MB)]`", &inside);
                continue;
            };
            let mut rest = inside;
            while rest.skip() {}
            let last = rest.last().into();
            return Some((name, Attribute { inside, last, hash, bang, bracket: place.start, content }));
        }
    }

    /// `#![name ...]` is for what surrounds it, which nothing here is.
    fn not_inner(&mut self, attribute: &Attribute) {
        if let Some(bang) = attribute.bang {
            self.report.error(bang, "an inner attribute", "write `#[...]` without `!`, before what it is for");
        }
    }

    fn only_one(&mut self, first: &Option<Settings>, second: &Option<Settings>) {
        if let (Some(_), Some(second)) = (first, second) {
            let message = format!("a second `#[{}]`", second.name);
            self.report.error(&second.name, message, "put all arguments into one");
        }
    }

    /// `(batch = 4, ...)`.
    fn settings(&mut self, name: Name, tokens: &mut Tokens) -> Option<Settings> {
        let Some(group) = tokens.group(Delimiter::Parenthesis) else {
            let example = if name.text == "train" {
                "#[train(batch = 32, optimizer = adam(lr = 1e-3), loss = cross_entropy)]"
            } else {
                "#[infer(batch = 32)]"
            };
            self.report.error(&name, format!("`#[{name}]` needs arguments"), format!("write `{example}`"));
            return None;
        };
        let place = Place::from(&name).to(group.place);
        Some(Settings { name, arguments: self.arguments(group.tokens), place })
    }

    /// `(12 GB)`, `(train = 12 GB, infer = 1 GB, reserve = 600 MB)`.
    fn budget(&mut self, name: &Name, tokens: &mut Tokens) -> Option<Budget> {
        let Some(group) = tokens.group(Delimiter::Parenthesis) else {
            self.report.error(name, "`#[budget]` needs an amount of memory", BUDGET_FORMS);
            return None;
        };
        let place = Place::from(name).to(group.place);
        let mut budget = Budget { train: None, infer: None, reserve: None, recompute: None, place };
        let mut inside = group.tokens;
        let mut readable = true;
        let mut amounts = Vec::new();
        self.separated(&mut inside, |parser, tokens| {
            if let Some(recompute) = tokens.word("recompute") {
                if budget.recompute.replace(recompute.into()).is_some() {
                    parser.report.error(recompute, "`recompute` is given twice", BUDGET_FORMS);
                }
                return Some(());
            }
            let amount = parser.budget_item(tokens);
            readable &= amount.is_some();
            amounts.push(amount?);
            Some(())
        });
        let both = amounts.iter().any(|(name, _)| name.is_none());
        for (name, amount) in &amounts {
            let slots: &mut [&mut Option<Amount>] = match name.as_ref().map(|n| n.text.as_str()) {
                None => &mut [&mut budget.train, &mut budget.infer],
                Some("train") => &mut [&mut budget.train],
                Some("infer") => &mut [&mut budget.infer],
                _ => &mut [&mut budget.reserve],
            };
            for slot in slots {
                if slot.is_some() {
                    let what = name.as_ref().map_or("the budget".to_string(), |n| format!("`{n}`"));
                    let message = if both && name.as_ref().is_some_and(|n| n.text != "reserve") {
                        format!("{what} stands beside an amount for both")
                    } else {
                        format!("{what} is given twice")
                    };
                    self.report.error(name.as_ref().map_or(amount.place, Place::from), message, BUDGET_FORMS);
                    readable = false;
                    break;
                }
                **slot = Some(*amount);
            }
        }
        if readable && budget.train.is_none() && budget.infer.is_none() {
            self.report.error(place, "the budget names no amount", BUDGET_FORMS);
            return None;
        }
        readable.then_some(budget)
    }

    /// `(momentum_gradients, row_tiles)`.
    fn without(&mut self, name: &Name, tokens: &mut Tokens) -> Option<Without> {
        let names = || Saving::ALL.map(Saving::name).join(", ");
        let Some(group) = tokens.group(Delimiter::Parenthesis) else {
            let help = format!("write `#[without(row_tiles)]`; there are {}", names());
            self.report.error(name, "`#[without]` needs the names of savings", help);
            return None;
        };
        let place = Place::from(name).to(group.place);
        let mut inside = group.tokens;
        if inside.at_end() {
            self.report.error(place, "`#[without]` names no saving", format!("there are {}", names()));
        }
        let mut savings = Vec::new();
        self.separated(&mut inside, |parser, tokens| {
            let Some(name) = tokens.name() else {
                return parser.expected("the name of a saving", &format!("there are {}", names()), tokens);
            };
            match Saving::find(&name.text) {
                Some(saving) if savings.contains(&saving) => {
                    parser.report.error(&name, format!("`{name}` is given twice"), "name each saving once");
                }
                Some(saving) => savings.push(saving),
                None => {
                    let help =
                        suggest::help(&name.text, Saving::ALL.map(Saving::name), &format!("there are {}", names()));
                    parser.report.error(&name, format!("unknown saving `{name}`"), help);
                }
            }
            Some(())
        });
        Some(Without { savings, place })
    }

    /// `12 GB` or `train = 12 GB`.
    fn budget_item(&mut self, tokens: &mut Tokens) -> Option<(Option<Name>, Amount)> {
        let name = tokens.name_before('=');
        if let Some(name) = &name
            && !["train", "infer", "reserve"].contains(&name.text.as_str())
        {
            let help = match name.text.as_str() {
                "inference" | "eval" | "evaluation" => "did you mean `infer`?".to_string(),
                text => suggest::help(text, ["train", "infer", "reserve"], BUDGET_FORMS),
            };
            self.report.error(name, format!("unknown budget `{name}`"), help);
            return None;
        }
        if name.is_none()
            && let Some(word) = { *tokens }.name()
            && suggest::nearest(&word.text, ["recompute"]).is_some()
        {
            self.report.error(&word, format!("unknown word `{word}`"), "did you mean `recompute`?");
            return None;
        }
        Some((name, self.amount(tokens)?))
    }

    /// `1.5 GB`.
    fn amount(&mut self, tokens: &mut Tokens) -> Option<Amount> {
        let Some(literal) = tokens.literal() else {
            let help = "amounts are written out, such as `8 MB` or `1.5 GiB`: a macro cannot see Rust constants";
            return self.expected("a number and a unit", help, tokens);
        };
        let start = Place::from(literal.span());
        if let Lit::Str(text) = Lit::new(literal.clone()) {
            let help = format!("leave the quotes out: `{}`", text.value());
            self.report.error(start, "expected a number and a unit, found text in quotes", help);
            return None;
        }
        let (digits, suffix) = split_number(literal);
        let unit = match suffix {
            // `8MB` in one token.
            Some(suffix) => Name { text: suffix, span: start.end },
            None => match tokens.name() {
                Some(unit) => unit,
                None if !tokens.at_end() && !tokens.peek(',') => {
                    let help = "amounts are written out, such as `8 MB` or `1.5 GiB`";
                    return self.expected("a unit", help, tokens);
                }
                None => {
                    let help = "add one of KB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024)";
                    self.report.error(start, "the amount has no unit", help);
                    return None;
                }
            },
        };
        let place = start.to(&unit);
        let Some(&(_, size, units)) = UNITS.iter().find(|(name, ..)| *name == unit.text) else {
            let other_case = UNITS.iter().find(|(name, ..)| {
                name.trim_end_matches('B').eq_ignore_ascii_case(unit.text.trim_end_matches(['b', 'B']))
            });
            let help = match other_case {
                Some((name, ..)) => format!("did you mean `{name}`?"),
                None => "units are KB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024)".to_string(),
            };
            self.report.error(&unit, format!("unknown unit `{unit}`"), help);
            return None;
        };
        match digits.and_then(|digits| bytes(&digits, size)) {
            Some(0) => {
                self.report.error(place, "an amount of no bytes", "give at least one byte");
                None
            }
            Some(bytes) => Some(Amount { bytes, units, place }),
            None => {
                let help = "write a plain decimal number below 2^64 bytes, such as `1.5 GB`";
                self.report.error(place, "this is no amount of memory", help);
                None
            }
        }
    }
}

/// An attribute's tokens after its name.
struct Attribute<'a> {
    inside: Tokens<'a>,
    last: Place,
    hash: Span,
    bang: Option<Span>,
    bracket: Span,
    content: Tokens<'a>,
}

impl Attribute<'_> {
    /// All of it, to be passed on.
    fn whole(&self) -> TokenStream {
        let mut punct = Punct::new('#', Spacing::Alone);
        punct.set_span(self.hash);
        let mut bracket = TokenGroup::new(Delimiter::Bracket, self.content.to_stream());
        bracket.set_span(self.bracket);
        TokenStream::from_iter([TokenTree::Punct(punct), TokenTree::Group(bracket)])
    }
}

/// The text in `= "text"`.
fn doc_text(mut tokens: Tokens) -> Option<String> {
    tokens.punct('=')?;
    match Lit::new(tokens.literal()?) {
        Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}

/// The digits of a decimal number, if it is one, and what is attached to it.
fn split_number(literal: Literal) -> (Option<String>, Option<String>) {
    let text = literal.to_string().replace('_', "");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    // `1e3` and `0x10` are numbers of other kinds.
    if suffix.contains(|c: char| c.is_ascii_digit()) || digits.is_empty() {
        return (None, None);
    }
    let digits = Some(digits.to_string());
    (digits, (!suffix.is_empty()).then(|| suffix.to_string()))
}

/// `digits` times `unit`, rounded down, without a float in between.
fn bytes(digits: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    // Twelve decimals are more than any unit has: the rest is far below a byte.
    let fraction = fraction.get(..12).unwrap_or(fraction);
    let part = if fraction.is_empty() {
        0
    } else {
        let scale = 10u128.pow(fraction.len() as u32);
        u64::try_from(u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale).ok()?
    };
    whole.checked_add(part)
}

/// The units of a message about `budget`: those of its first amount.
impl Budget {
    /// The family of units that it was declared in.
    pub fn units(&self) -> Units {
        self.train.or(self.infer).map_or(Units::Decimal, |amount| amount.units)
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn amounts_are_exact() {
        assert_eq!(bytes("1.5", 1_000_000_000), Some(1_500_000_000));
        assert_eq!(bytes("0.1", 1_000_000_000), Some(100_000_000));
        assert_eq!(bytes("0.3", 1024), Some(307));
        assert_eq!(bytes("1.", 1000), Some(1000));
        assert_eq!(bytes("18446744073709551615", 1), Some(u64::MAX));
        assert_eq!(bytes("18446744073709551616", 1), None);
        assert_eq!(bytes("16777216", 1 << 40), None);
    }
}
