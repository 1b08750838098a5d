//! How long the macro's own work takes, unoptimized, as users build it. Prints figures: run with
//! `cargo test -p plimsoll-lang --test speed -- --ignored --nocapture`.

use std::str::FromStr;
use std::time::Instant;

use plimsoll_lang::{check, lower, parse, report::Report, resolve};
use proc_macro2::TokenStream;

/// Times each stage of reading `source`, the best of several runs.
fn time(name: &str, source: &str) {
    let tokens = TokenStream::from_str(source).expect("tokens");
    let mut best = [f64::INFINITY; 3];
    for _ in 0..5 {
        let mut report = Report::default();
        let start = Instant::now();
        let mut tree = parse::parse(tokens.clone(), &mut report);
        let parsed = Instant::now();
        resolve::resolve(&mut tree, &mut report);
        check::check(&tree, &mut report);
        let checked = Instant::now();
        let consts = lower::evaluate_consts(&tree.network.as_ref().expect("a network").consts, &mut report);
        let graph = lower::lower(&tree, &consts, &mut report);
        let lowered = Instant::now();
        assert!(graph.is_some() && report.is_empty(), "{name}: {:?}", report.mistakes().first());
        for (best, took) in best.iter_mut().zip([parsed - start, checked - parsed, lowered - checked]) {
            *best = best.min(took.as_secs_f64() * 1e3);
        }
    }
    println!("{name:>14}: parse {:.2} ms, check {:.2} ms, lower {:.2} ms", best[0], best[1], best[2]);
}

#[test]
#[ignore = "prints timings"]
fn timings() {
    let zoo = |name: &str| {
        let path = format!("{}/../examples/zoo/{name}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("an example");
        let start = text.find("network! {").expect("a network") + "network! {".len();
        let end = text.find("\nfn main").expect("main");
        text[start..end].trim_end().trim_end_matches('}').to_string()
    };
    time("vgg16", &zoo("vgg16"));
    time("resnet152", &zoo("resnet152"));
    time("densenet121", &zoo("densenet121"));
    for layers in [1000, 2000, 4000, 8000] {
        let chain: String = (0..layers / 2).map(|i| format!("fc{i}: linear(64), relu,")).collect();
        let text = format!(
            "#[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)] struct Chain(x: f32[64]) {{ {chain} }}"
        );
        time(&format!("chain {layers}"), &text);
    }
}
