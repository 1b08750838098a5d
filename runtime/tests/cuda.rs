//! Compares CUDA with what PyTorch computes, as `references.rs` compares the CPU: the same cases, the same ways, the same
//! tolerance. Once with cuBLAS, once with our own kernel in its place, and once with threads the other way round and races
//! watched.

mod card;
#[path = "references/case.rs"]
mod case;
#[path = "references/compare.rs"]
mod compare;
#[path = "references/network.rs"]
mod network;
#[path = "references/run.rs"]
mod run;

use std::collections::BTreeSet;

use card::Card;
use case::Group;
use compare::Report;
use plimsoll_runtime::proof::Poisoned;
use run::Way;

/// Runs every case of a group in these ways.
fn check(group: &str, ways: &[Way]) {
    let card = Card::new();
    assert!(card::is_real() || card.cuda().uses_cublas(), "the emulator's cuBLAS is not found");
    let group = Group::read(group);
    let mut report = Report::default();
    for cuda in [card.cuda(), card.cuda().without_cublas()] {
        let by = if cuda.uses_cublas() { "by cuBLAS" } else { "by our own products" };
        let mut device = Poisoned::new(cuda);
        for case in &group.cases {
            for &way in ways.iter().filter(|way| way.suits(case)) {
                let outcome = run::run(&mut device, &group, case, way);
                report.case(&format!("{} ({way:?}, {by})", case.name), outcome);
            }
        }
    }
    report.finish();
}

#[test]
fn layers_alone() {
    check("layers", &[Way::Plain, Way::SmallBatch, Way::Twice]);
}

#[test]
fn large_tensors() {
    check("large", &[Way::Plain, Way::Saving, Way::Twice]);
}

#[test]
fn losses() {
    check("losses", &[Way::Plain, Way::SmallBatch, Way::Twice]);
}

#[test]
fn optimizers() {
    check("optimizers", &[Way::Plain, Way::Saving]);
}

#[test]
fn networks() {
    check("networks", &[Way::Plain, Way::Saving, Way::SmallBatch]);
}

/// What no reference starts: kernels of plans that compute again or slice the loss. Tests in `cuda_training.rs` run them
/// backwards too, and dropout, whose masks no reference has.
const OTHERS: [&str; 4] = ["batchnorm_again", "sliced_gradient", "sliced_loss", "sliced_statistics"];

/// Threads and blocks go the other way round, and a word of global memory that one block writes and another touches is a
/// fault. By our own products, which are kernels, and in as few ways as it takes to start every kernel.
#[test]
fn neither_order_nor_races_matter_to_any_kernel() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("only the emulator changes the order of threads") else { return };
    let mut device = Poisoned::new(card.cuda().without_cublas());
    let mut report = Report::default();
    for (group, way) in [
        ("layers", Way::Plain),
        ("large", Way::Plain),
        ("large", Way::Saving),
        ("losses", Way::Plain),
        ("optimizers", Way::Plain),
        ("optimizers", Way::Saving),
        ("networks", Way::Saving),
    ] {
        let group = Group::read(group);
        for case in &group.cases {
            let outcome = card.backwards(|| run::run(&mut device, &group, case, way));
            report.case(&format!("{} ({way:?}, backwards)", case.name), outcome);
        }
    }
    report.finish();
    let started: BTreeSet<String> = emulator.kernels().into_iter().collect();
    let left_out: Vec<String> = kernels().difference(&started).cloned().collect();
    assert_eq!(left_out, OTHERS, "never ran");
}

/// The names of all kernels.
fn kernels() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/ptx");
    let files = std::fs::read_dir(folder).expect("the kernels are there").map(|file| file.expect("a file").path());
    let texts = files.map(|path| std::fs::read_to_string(path).expect("PTX is text"));
    let entries = |text: String| -> Vec<String> {
        let names = text.split(".visible .entry ").skip(1).map(|entry| entry.split('(').next().unwrap_or_default());
        names.map(str::to_string).collect()
    };
    texts.flat_map(entries).collect()
}
