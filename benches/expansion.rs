//! How long the macro takes to expand, as users have it: procedural macros are built without optimization, so run this
//! with `cargo bench --bench expansion --profile dev`.
//!
//! Each source is expanded as the macro does it, by the library behind it. Outside of rustc the library has `proc_macro2`'s
//! own tokens, which are not optimized either. The column `lexing` is what they take to read the text of the output once, a
//! part of the median that users do not wait for: in a macro, rustc's own lexer reads it, which is optimized. The last lines
//! compile: `cargo check` of a crate that holds ResNet-152 beside one that holds nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use proc_macro2::TokenStream;

/// Runs of each measurement; the median counts.
const RUNS: usize = 9;

fn main() {
    if !cfg!(debug_assertions) {
        println!("note: this is an optimized build; users' macros are not: add `--profile dev`");
    }
    println!("{:<28}{:>12}{:>12}{:>12}{:>14}", "source", "median ms", "lexing ms", "target ms", "output tokens");
    for (name, target) in [
        ("vgg16", 20.0),
        ("resnet18", f64::NAN),
        ("resnet50", f64::NAN),
        ("resnet152", 150.0),
        ("densenet121", f64::NAN),
    ] {
        row(name, &zoo(name), target);
    }
    // A little more than half of what it needs otherwise.
    let budget = zoo("resnet152").replace("#[budget(16 GB)]", "#[budget(2.5 GB, recompute)]");
    assert!(budget.contains("recompute"), "the zoo's ResNet-152 has another budget");
    row("resnet152 with recompute", &budget, 1000.0);
    for (layers, target) in [(125, f64::NAN), (250, f64::NAN), (500, f64::NAN), (1000, 1000.0)] {
        row(&format!("chain of {layers} layers"), &chain(layers), target);
    }
    cargo_check();
}

fn row(name: &str, source: &str, target: f64) {
    let tokens: TokenStream = source.parse().expect("the source is Rust tokens");
    let time = |run: &mut dyn FnMut()| {
        let times = (0..RUNS).map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        });
        milliseconds(median(times.collect()))
    };
    let (mut inputs, mut code) = (vec![tokens; RUNS], TokenStream::new());
    let whole = time(&mut || code = plimsoll_lang::expand::network(inputs.pop().expect("one for each run")));
    let text = code.to_string();
    let lexing = time(&mut || drop(text.parse::<TokenStream>()));
    let target = if target.is_nan() { String::new() } else { format!("{target:.0}") };
    println!("{name:<28}{whole:>12.1}{lexing:>12.1}{target:>12}{:>14}", code.into_iter().count());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What stands between the braces of `network! { ... }` in a file of the zoo.
fn zoo(name: &str) -> String {
    let path = root().join("examples/zoo").join(format!("{name}.rs"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let start = text.find("network! {").expect("a network") + "network! {".len();
    let end = text[start..].find("\n}").expect("its end") + start;
    text[start..end].to_string()
}

/// A chain of that many layers, half of them linear.
fn chain(layers: usize) -> String {
    let pairs = layers / 2;
    format!(
        "#[train(batch = 32, optimizer = sgd(momentum = 0.9), loss = mse)] #[budget(1 GB)]
         struct Deep(x: f32[64]) {{ ..[Pair; {pairs}] }}
         block Pair {{ linear(64), relu }}"
    )
}

/// `cargo check` of a crate with ResNet-152, and of one without, dependencies already built.
fn cargo_check() {
    let folder = root().join("target/expansion-bench");
    let resnet = format!("plimsoll::network! {{ {} }}\n", zoo("resnet152"));
    let cases = [("empty crate", String::new()), ("crate with resnet152", resnet)];
    let mut medians = Vec::new();
    for (name, body) in cases {
        let times = check(&folder, &body);
        println!("cargo check, {name:<22}{:>8.0} ms", milliseconds(times));
        medians.push(times);
    }
    let difference = milliseconds(medians[1]) - milliseconds(medians[0]);
    println!("difference                          {difference:>8.0} ms, target 500");
}

fn check(folder: &Path, body: &str) -> Duration {
    fs::create_dir_all(folder.join("src")).expect("a folder to build in");
    let manifest = format!(
        "[package]\nname = \"expansion-bench\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\nplimsoll = {{ path = {:?} }}\n[workspace]\n",
        root()
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("the manifest");
    let mut times = Vec::new();
    for run in 0..6 {
        fs::write(folder.join("src/lib.rs"), format!("//! Run {run}.\n{body}")).expect("the source");
        let start = Instant::now();
        let status = Command::new(env!("CARGO")).args(["check", "--quiet", "--offline"]).current_dir(folder).status();
        let time = start.elapsed();
        assert!(status.expect("cargo runs").success(), "cargo check failed");
        // The first run builds the dependencies.
        if run > 0 {
            times.push(time);
        }
    }
    median(times)
}
