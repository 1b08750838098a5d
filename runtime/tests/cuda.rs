//! Compares CUDA with what PyTorch computes, as `references.rs` compares the CPU: the same cases, the same ways, the same
//! tolerance. Once with cuBLAS, once with our own kernel in its place.

mod card;
#[path = "references/case.rs"]
mod case;
#[path = "references/compare.rs"]
mod compare;
#[path = "references/network.rs"]
mod network;
#[path = "references/run.rs"]
mod run;

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
