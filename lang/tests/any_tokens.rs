//! Whatever tokens there are, reading them ends soon, with a network or with errors, and never panics.
//!
//! Tests run on threads with 2 MB of stack, less than a compiler gives a macro.

use std::str::FromStr;
use std::time::{Duration, Instant};

use plimsoll_lang::limits;
use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Valid networks that together use all of the language.
const SEEDS: &[&str] = &[
    "#[train(batch = 4, optimizer = adam(lr = 1e-3, betas = (0.9, 0.99)), loss = cross_entropy(label_smoothing = 0.1))]
     #[infer(batch = 2)] #[budget(train = 1.5 GB, infer = 300 MiB, reserve = 1 MB)]
     pub(crate) struct Net(image: u8[3, 16, 4 * 4], skip: f32[WIDTH]) {
        /// A width.
        const WIDTH = 8 + 2 * DEPTH; const DEPTH = 2;
        start: [normalize(mean = [0.5, 0.5, 0.5], std = (0.2, 0.2, 0.2)), conv2d(WIDTH, kernel = (3, 5), padding = 1), relu],
        #[freeze] middle: [..[Basic(WIDTH); DEPTH], ..if WIDTH > 3 && !(DEPTH == 1) { [relu, silu] }, Basic(2 * WIDTH, stride = 2)],
        scale: parameter([1, 1], init = 1.0),
        head: [flatten, linear(max(WIDTH, 10)), norm: batchnorm1d],
        last: tied(other),
        other: linear(10),
        fn forward(image, skip) {
            let y = image.start().middle().head();
            let z = other(skip) * 0.5 - 1;
            relu(y.dropout(0.1).last() + z) * scale.flatten() + skip.other() - z
        }
     }
     block Basic(channels, stride = 1, half = channels / 2) {
        conv1: conv2d(half, 3, stride = stride, padding = 1), conv2: conv2d(channels, 1),
        down: if stride != 1 || half < 0 { conv2d(channels, kernel = 1, stride = stride) } else if half == 1 { identity } else { conv2d(channels, 1) },
        fn forward(x) { concat(x.conv1().conv2(), down(x), axis = 0) }
     }",
    "struct Mlp(x: f32[8]) { linear(4), relu, [linear(4); 3], linear(2) }",
];

/// What a token may be replaced by.
const WORDS: &[&str] = &[
    "x",
    "y",
    "Basic",
    "conv2d",
    "linear",
    "relu",
    "tied",
    "if",
    "else",
    "let",
    "fn",
    "forward",
    "struct",
    "block",
    "const",
    "pub",
    "min",
    "WIDTH",
    "train",
    "true",
    "0",
    "1",
    "64",
    "99999999999",
    "9223372036854775807",
    "1e308",
    "0.5",
    "\"s\"",
    "'c'",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "..",
    ".",
    ",",
    ";",
    ":",
    "::",
    "=",
    "==",
    "<",
    ">",
    "&&",
    "||",
    "#",
    "()",
    "[]",
    "{}",
    "(x)",
    "[relu; 9999999]",
    "{ relu }",
    "#[freeze]",
    "#[budget(1 MB)]",
    "'a",
    "$",
];

/// Reads tokens and checks what must always hold.
fn read(tokens: TokenStream) {
    let start = Instant::now();
    let (declaration, errors) = plimsoll_lang::read(tokens.clone());
    assert!(start.elapsed() < Duration::from_secs(20), "took {:?}", start.elapsed());
    match errors {
        Some(errors) => {
            let count = errors
                .into_iter()
                .inspect(|error| assert!(!error.to_string().contains("bug"), "{error}\n{tokens}"))
                .count();
            assert!((1..=limits::ERRORS).contains(&count));
        }
        None => assert!(declaration.is_some_and(|d| d.graph.is_some())),
    }
}

/// One change to the tokens: where, of what kind, and with which word.
type Mutation = (usize, u8, usize);

fn count(tokens: &TokenStream) -> usize {
    let inner = |token: &TokenTree| if let TokenTree::Group(group) = token { count(&group.stream()) } else { 0 };
    tokens.clone().into_iter().map(|token| 1 + inner(&token)).sum()
}

/// The tokens with the one at `index`, counted through all brackets, changed.
fn mutate(tokens: TokenStream, index: &mut usize, kind: u8, word: usize) -> TokenStream {
    let mut result: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let here = *index == 0;
        *index = index.wrapping_sub(1);
        if here {
            let words = TokenStream::from_str(WORDS[word % WORDS.len()]).expect("words are tokens");
            match kind {
                0 => {}
                1 => result.extend([token.clone(), token]),
                2 => result.extend(words),
                3 => {
                    result.extend(words);
                    result.push(token);
                }
                4 => {
                    let at = result.len().saturating_sub(1);
                    result.insert(at, token);
                }
                _ => match token {
                    TokenTree::Group(group) if kind == 5 => result.extend(group.stream()),
                    other => {
                        let delimiters =
                            [Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket, Delimiter::None];
                        result.push(Group::new(delimiters[word % 4], other.into()).into());
                    }
                },
            }
            continue;
        }
        result.push(match token {
            TokenTree::Group(group) => {
                let mut changed = Group::new(group.delimiter(), mutate(group.stream(), index, kind, word));
                changed.set_span(group.span());
                changed.into()
            }
            other => other,
        });
    }
    result.into_iter().collect()
}

#[test]
fn mutated_networks_give_errors_or_networks() {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mutations = prop::collection::vec((any::<usize>(), 0u8..7, any::<usize>()), 1..4);
    TestRunner::new_with_rng(config, rng)
        .run(&(0..SEEDS.len(), mutations), |(seed, mutations): (usize, Vec<Mutation>)| {
            let mut tokens = TokenStream::from_str(SEEDS[seed]).expect("seeds are tokens");
            for (index, kind, word) in mutations {
                let mut index = index % count(&tokens).max(1);
                tokens = mutate(tokens, &mut index, kind, word);
            }
            read(tokens);
            Ok(())
        })
        .unwrap();
}

#[test]
fn seeds_are_valid() {
    for seed in SEEDS {
        let (_, errors) = plimsoll_lang::read(TokenStream::from_str(seed).expect("tokens"));
        assert!(errors.is_none(), "{:?}", errors.map(|e| e.into_iter().map(|e| e.to_string()).collect::<Vec<_>>()));
    }
}

/// `open` as often as `depth`, then `middle`, then `close` as often.
fn nest(open: &str, middle: &str, close: &str, depth: usize) -> String {
    format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_without_end_is_an_error() {
    for depth in [10, 50, 62, 63, 64, 65, 3000] {
        for text in [
            nest("[", "relu", "]", depth),
            nest("(", "relu", ")", depth),
            nest("{", "relu", "}", depth),
            format!("linear({})", nest("(", "4", ")", depth)),
            format!("linear({})", nest("min(1, ", "4", ")", depth)),
            format!("linear({}4)", "-".repeat(depth)),
            format!("linear({}4)", "!".repeat(depth)),
            nest("if true { ", "relu", "}", depth),
            nest("if false { relu } else { ", "relu", "}", depth),
            format!("if false {{ relu }} {} else {{ relu }}", "else if false { relu }".repeat(depth)),
            format!("linear(1 {})", "+ 1".repeat(depth)),
            format!("linear(1 {})", "* 1 + 1".repeat(depth)),
            format!("linear(1 {})", "- (1)".repeat(depth)),
            format!("a: relu, fn forward(x) {{ x{} }}", ".a()".repeat(depth)),
            format!("a: relu, fn forward(x) {{ {} }}", nest("a(", "x", ")", depth)),
            format!("a: relu, fn forward(x) {{ x.a(){} }}", " + x".repeat(depth)),
            format!("a: relu, fn forward(x) {{ {}x.a() }}", "let x = x.a();".repeat(depth)),
            nest("[..[", "relu", "]]", depth),
            nest("[", "relu", "; 2]", depth),
        ] {
            if let Ok(tokens) = TokenStream::from_str(&format!("struct Net(x: f32[8]) {{ {text} }}")) {
                read(tokens);
            }
        }
    }
}

#[test]
fn blocks_within_blocks_without_end_are_an_error() {
    for depth in [10, 100, 2000] {
        // Each block holds the next, once or twice, in a list or through a `forward`.
        for (inner, last) in [
            ("{ Next }", "{ relu }"),
            ("{ Next, Next }", "{ relu }"),
            ("{ [[[Next]]] }", "{ relu }"),
            ("{ ..Next, ..Next }", "{ relu }"),
            ("{ [Next; 3] }", "{ [relu; 0] }"),
            ("{ if true { Next } else { Next } }", "{ relu }"),
            ("{ a: Next, fn forward(x) { ((((x + (a(a(x))))))) } }", "{ relu }"),
            ("{ a: Next, b: Next, fn forward(x) { a(b(x)) } }", "{ relu }"),
        ] {
            let mut text = "struct Net(x: f32[8]) { B0 }".to_string();
            for i in 0..depth {
                text.push_str(&format!(" block B{i} {}", inner.replace("Next", &format!("B{}", i + 1))));
            }
            text.push_str(&format!(" block B{depth} {last}"));
            read(TokenStream::from_str(&text).expect("tokens"));
        }
    }
}

#[test]
fn many_tokens_take_time_in_proportion() {
    let text = |n: usize| format!("struct Net(x: f32[8]) {{ {} }}", "linear(8), ".repeat(n));
    let time = |n: usize| {
        let tokens = TokenStream::from_str(&text(n)).expect("tokens");
        let start = Instant::now();
        read(tokens);
        start.elapsed()
    };
    time(100);
    let (small, large) = (time(1000), time(8000));
    assert!(large < small * 40, "{small:?} for 1000 layers, {large:?} for 8000");
    // Above the limits: refused, and soon.
    read(TokenStream::from_str(&text(limits::LAYERS + 1)).expect("tokens"));
    read(TokenStream::from_str(&"+ ".repeat(limits::TOKENS + 1)).expect("tokens"));
    read(TokenStream::from_str(&format!("struct Net(x: f32[8]) {{ {} }}", "? ".repeat(100_000))).expect("tokens"));
}

#[test]
fn consts_may_form_long_chains() {
    let mut text = String::from("struct Net(x: f32[8]) {");
    for i in 0..10_000 {
        text.push_str(&format!("const C{i} = C{};", i + 1));
    }
    text.push_str("const C10000 = 4; linear(C0) }");
    let (declaration, errors) = plimsoll_lang::read(TokenStream::from_str(&text).expect("tokens"));
    assert!(errors.is_none());
    assert!(declaration.is_some_and(|d| d.graph.is_some()));
}

#[test]
fn numbers_of_any_size_are_read_or_refused() {
    let layers = [
        "linear(N)",
        "conv2d(N, kernel = 3)",
        "conv2d(4, kernel = N)",
        "conv2d(4, kernel = N, padding = N)",
        "conv2d(4, kernel = 3, stride = N)",
        "conv2d(4, kernel = 1, dilation = N)",
        "conv2d(N, kernel = N, padding = N, groups = N)",
        "conv1d(N, kernel = N, padding = N)",
        "conv_transpose2d(N, kernel = N, stride = N, padding = N, dilation = N)",
        "conv_transpose2d(4, kernel = N, stride = N)",
        "maxpool2d(N, padding = N)",
        "avgpool2d(N, stride = N)",
        "adaptive_avgpool2d(N)",
        "upsample(N)",
        "groupnorm(N)",
        "reshape([N, -1])",
        "reshape([N, N])",
        "permute([N, 0, 1])",
        "parameter([N, N, N])",
        "layernorm(axes = N)",
        "flatten(N)",
        "softmax(axis = N)",
        "softmax(axis = -N)",
        "dropout(N)",
    ];
    let numbers = ["0", "1", "2", "3", "2147483647", "2147483648", "4294967296", "9223372036854775807", "0.5", "1e300"];
    for layer in layers {
        for number in numbers {
            for input in ["3, 8, 8", "N, N, N", "N"] {
                let text = format!(
                    "#[train(batch = N, optimizer = sgd(lr = N), loss = mse)] struct Net(x: f32[{input}]) {{ {layer} }}"
                );
                let text = text.replace('N', number).replace(&format!("{number}et"), "Net");
                read(TokenStream::from_str(&text).expect("tokens"));
            }
        }
    }
    let mut huge = Literal::u128_unsuffixed(u128::MAX).to_string();
    huge.push_str(&"0".repeat(10_000));
    read(
        TokenStream::from_str(&format!("#[budget({huge} GB)] struct Net(x: f32[{huge}]) {{ linear({huge}) }}"))
            .expect("tokens"),
    );
}

/// Reads a network whose mistakes are without end, which takes neither memory nor time without end.
fn read_soon(text: &str) -> Vec<String> {
    let tokens = TokenStream::from_str(text).expect("tokens");
    let start = Instant::now();
    let (_, errors) = plimsoll_lang::read(tokens);
    let took = start.elapsed();
    assert!(took.as_secs() < 5, "{took:?} for {}", &text[..80]);
    errors.into_iter().flatten().map(|e| e.to_string()).collect()
}

#[test]
fn lists_do_not_grow_without_end() {
    let mut text = String::from("struct Net(x: f32[8]) { const C0 = [1, 2];");
    for i in 1..60 {
        text.push_str(&format!("const C{i} = [C{0}, C{0}];", i - 1));
    }
    let errors = read_soon(&format!("{text} linear(4) }}"));
    assert!(errors[0].contains("a list inside a list"), "{errors:?}");

    let mut text = String::from("struct Net(x: f32[8]) { B0([1, 2]) }");
    for i in 0..60 {
        text.push_str(&format!("block B{i}(a) {{ B{}([a, a]) }}", i + 1));
    }
    let errors = read_soon(&format!("{text} block B60(a) {{ linear(4) }}"));
    assert!(errors[0].contains("a list inside a list"), "{errors:?}");

    let numbers = |n: usize| "1, ".repeat(n);
    let copies: String = (0..20_000).map(|i| format!("const C{i} = L;")).collect();
    let list = |n: usize| format!("struct Net(x: f32[8]) {{ const L = [{}]; {copies} linear(4) }}", numbers(n));
    assert!(read_soon(&list(20_000))[0].contains("at most 4096 elements"));
    assert!(read_soon(&list(4_000))[0].contains("steps"));

    for n in [100_001, 4_000] {
        let list = numbers(n);
        let text = format!("struct Net(x: f32[8]) {{ [normalize(mean = [{list}], std = [{list}]); 9000] }}");
        assert!(!read_soon(&text).is_empty());
    }
    let text = format!("struct Net(x: f32[8]) {{ const L = [{}]; linear(L) }}", numbers(4_000));
    let errors = read_soon(&text);
    assert!(errors[0].len() < 600, "{errors:?}");
    let long = "1 + ".repeat(100_000);
    assert!(!read_soon(&format!("struct Net(x: f32[8]) {{ [linear({long} 1); 9000] }}")).is_empty());
}

#[test]
fn names_and_shapes_are_bounded() {
    let name = "a".repeat(257);
    let errors =
        read_soon(&format!("struct Net(x: f32[8]) {{ {name}: linear(4), more: linear(4), even_more: linear(4) }}"));
    assert!(errors[0].contains("has more than 256 characters"), "{errors:?}");
    let ones = "1, ".repeat(17);
    for text in [
        format!("struct Net(x: f32[{ones}]) {{ flatten, linear(4), linear(4), linear(4), linear(4), linear(4) }}"),
        format!("struct Net(x: f32[1]) {{ reshape([{ones}]), linear(4), linear(4), linear(4), linear(4) }}"),
    ] {
        let errors = read_soon(&text);
        assert!(errors.len() == 1 && errors[0].contains("at most 16 axes"), "{errors:?}");
    }
}

#[test]
fn suggestions_are_made_for_errors_that_are_shown() {
    for n in [1_000, 5_000] {
        let consts: String = (0..n).map(|i| format!("const WIDTH_OF_LAYER_{i} = 4;")).collect();
        let uses: String = (0..n).map(|i| format!("linear(WIDHT_OF_LAYER_{i}), ")).collect();
        let errors = read_soon(&format!("struct Net(x: f32[8]) {{ {consts} {uses} }}"));
        assert_eq!(errors.len(), limits::ERRORS);
    }
}
