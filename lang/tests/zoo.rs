//! The networks of `examples/zoo`, against the parameters that torchvision has for them.

use std::path::Path;
use std::str::FromStr;

use plimsoll_plan::graph::{Graph, ParameterRole};
use proc_macro2::{TokenStream, TokenTree};

/// The tokens between the braces of the first `network!` of a source file.
fn tokens_of(source: &str) -> TokenStream {
    let mut tokens = TokenStream::from_str(source).expect("an example is Rust").into_iter();
    while let Some(token) = tokens.next() {
        if token.to_string() == "network"
            && tokens.next().is_some_and(|t| t.to_string() == "!")
            && let Some(TokenTree::Group(group)) = tokens.next()
        {
            return group.stream();
        }
    }
    panic!("no network! in the example");
}

fn graph_of(path: &Path) -> Graph {
    let source = std::fs::read_to_string(path).expect("readable");
    let (declaration, errors) = plimsoll_lang::read(tokens_of(&source));
    if let Some(errors) = errors {
        panic!("{}: {:#?}", path.display(), errors.into_iter().map(|e| e.to_string()).collect::<Vec<_>>());
    }
    declaration.and_then(|d| d.graph).expect("no error, hence a graph")
}

#[test]
fn every_network_has_the_parameters_of_its_reference() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut compared = 0;
    for entry in std::fs::read_dir(root.join("examples/zoo")).expect("the zoo") {
        let path = entry.expect("an entry").path();
        let graph = graph_of(&path);
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let Ok(reference) = std::fs::read_to_string(root.join(format!("tests/references/zoo/{name}.csv"))) else {
            continue;
        };
        let mut expected: Vec<(String, String, &str)> = Vec::new();
        for line in reference.lines().filter(|l| !l.starts_with('#')).skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            if !fields[0].ends_with("num_batches_tracked") {
                expected.push((fields[0].to_string(), fields[1].to_string(), fields[2]));
            }
        }
        let mut found: Vec<(String, String, &str)> = graph
            .parameters
            .iter()
            .map(|p| {
                let shape = p.shape.0.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
                let role = if p.role == ParameterRole::Buffer { "buffer" } else { "parameter" };
                (p.path.clone(), shape, role)
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 12, "only {compared} references were found");
}
