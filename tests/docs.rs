//! The documents say what the code does: the reference's tables, the README's error and summary, and the picture.

mod regions;
#[path = "../examples/zoo/resnet18.rs"]
#[allow(dead_code)]
mod resnet18;
#[path = "../examples/zoo/resnet50.rs"]
#[allow(dead_code)]
mod resnet50;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use plimsoll::Network;
use plimsoll::plan::arguments::{Argument, Definition, Kind};
use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::plan::Plan;
use plimsoll::plan::report::failure::training_failure;
use plimsoll::plan::strategy::Saving;
use plimsoll::plan::{layers, losses, optimizers};
use plimsoll_lang::resolve::describe;

const LANGUAGE: &str = "docs/language.md";

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Size => "a size".to_string(),
        Kind::Count => "a count".to_string(),
        Kind::Axis => "an integer".to_string(),
        Kind::SizePair => "a size or pair".to_string(),
        Kind::CountPair => "a count or pair".to_string(),
        Kind::Dims => "a list of sizes".to_string(),
        Kind::Counts => "a list of axes".to_string(),
        Kind::Bool => "`true` or `false`".to_string(),
        Kind::Floats => "a number, or one for each channel".to_string(),
        Kind::Float { .. } | Kind::FloatPair { .. } | Kind::Word(_) => kind.to_string(),
    }
}

fn arguments(arguments: &[Argument]) -> String {
    let lines = arguments.iter().map(|argument| format!("{}: {}", describe(&[*argument]), kind(argument.kind)));
    lines.collect::<Vec<_>>().join("<br>")
}

/// A table of definitions, one row each.
fn table<T>(head: &str, definitions: &[&Definition<T>], note: impl Fn(&Definition<T>) -> String) -> String {
    let mut table = format!("| {head} | what it does | arguments |\n|---|---|---|\n");
    for definition in definitions {
        let name = format!("`{}`{}", definition.name, note(definition));
        let row = [name, definition.summary.to_string(), arguments(definition.arguments)];
        writeln!(table, "| {} |", row.join(" | ")).unwrap();
    }
    table
}

#[test]
fn the_table_of_layers() {
    let note = |definition: &Definition<_>| if definition.has_parameters { " *" } else { "" }.to_string();
    regions::check(LANGUAGE, "layers", &table("layer", layers::DEFINITIONS, note));
}

#[test]
fn the_table_of_losses() {
    regions::check(LANGUAGE, "losses", &table("loss", losses::DEFINITIONS, |_| String::new()));
}

#[test]
fn the_table_of_optimizers() {
    regions::check(LANGUAGE, "optimizers", &table("optimizer", optimizers::DEFINITIONS, |_| String::new()));
}

#[test]
fn the_table_of_savings() {
    let mut table = "| saving | what it does |\n|---|---|\n".to_string();
    for saving in Saving::ALL {
        writeln!(table, "| `{}` | {} |", saving.name(), saving.summary()).unwrap();
    }
    regions::check(LANGUAGE, "savings", &table);
}

/// The README's first network, as it stands between the braces of its `network!`.
fn first_network() -> String {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let start = readme.find("network! {").expect("a first network") + "network! {".len();
    let end = start + readme[start..].find("\n}").expect("its end");
    readme[start..end].to_string()
}

fn plan(source: &str) -> Plan {
    let (declaration, errors) = plimsoll_lang::read(FromStr::from_str(source).unwrap());
    assert!(errors.is_none(), "{errors:?}");
    Plan::new(declaration.unwrap().graph.unwrap()).unwrap()
}

#[test]
fn the_summary_in_the_readme() {
    let plan = plan(&first_network());
    assert_eq!(training_failure(&plan, &Footprint::new(&plan)), None);
    regions::check("README.md", "summary", &regions::block(&plan.summary()));
}

/// What the first network says with a batch of 256: the message of the build error.
#[test]
fn the_error_in_the_readme() {
    let source = first_network().replace("batch = 4", "batch = 256");
    assert_ne!(source, first_network(), "the first network has another batch");
    let plan = plan(&source);
    let message = training_failure(&plan, &Footprint::new(&plan)).expect("too large");
    regions::check("README.md", "error", &regions::block(&as_rustc_shows(&message)));
}

/// rustc puts the further lines of a message below the first one's text.
fn as_rustc_shows(message: &str) -> String {
    let lines = message.lines().map(|line| if line.is_empty() { line.to_string() } else { format!("       {line}") });
    format!("error: {}", lines.collect::<Vec<_>>().join("\n").trim_start())
}

/// A network whose activations do not fit: the message has the price of computing them again.
#[test]
fn the_price_of_recomputation_in_the_readme() {
    let mut graph = resnet50::ResNet50::graph().budget(1_200_000_000);
    graph.budget.infer = graph.budget.train;
    let plan = graph.plan().unwrap();
    let message = training_failure(&plan, &Footprint::new(&plan)).expect("too large");
    assert!(message.contains("#[budget(1.2 GB, recompute)]: needs"), "{message}");
    regions::check("README.md", "recompute", &regions::block(&as_rustc_shows(&message)));
}

#[test]
fn the_picture_in_the_readme() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/arena.svg");
    let plan = resnet18::ResNet18::graph().budget(550_000_000).plan().unwrap();
    let picture = plan.picture_file() + "\n";
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, picture).unwrap();
    } else {
        let current = fs::read_to_string(&path).unwrap() == picture;
        assert!(current, "docs/arena.svg is not what ResNet-18's plan is: cargo run --example picture");
    }
}
