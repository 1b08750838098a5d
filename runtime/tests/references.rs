//! Compares the CPU with what PyTorch computes for the same networks: see `scripts/torch_references.py`.
//!
//! A case passes if every tensor does: no element may be off by more than [`TOLERANCE`](compare::TOLERANCE) times the
//! tensor's largest magnitude. Each layer is run in several [ways](run::Way), which must all give the same.

#[path = "references/case.rs"]
mod case;
#[path = "references/compare.rs"]
mod compare;
#[path = "references/network.rs"]
mod network;
#[path = "references/run.rs"]
mod run;

use case::Group;
use compare::Report;
use plimsoll_runtime::Cpu;
use plimsoll_runtime::proof::{Apart, Poisoned};
use run::Way;

/// Runs every case of a group in these ways.
fn check(group: &str, ways: &[Way]) {
    let group = Group::read(group);
    let mut report = Report::default();
    for case in &group.cases {
        for &way in ways.iter().filter(|way| way.suits(case)) {
            let outcome = run::run(&mut Poisoned::new(cpu(1)), &group, case, way);
            report.case(&format!("{} ({way:?})", case.name), outcome);
        }
    }
    report.finish();
}

fn cpu(threads: usize) -> Cpu {
    Cpu::with_threads(threads).expect("a few threads can be had")
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

/// Blocked kernels stay within their buffers: guards of NaN are untouched, and show in no result.
#[test]
fn large_tensors_apart() {
    let group = Group::read("large");
    let mut report = Report::default();
    for case in &group.cases {
        for way in [Way::Plain, Way::Saving] {
            let outcome = run::run(&mut Apart::new(cpu(1)), &group, case, way);
            report.case(&format!("{} ({way:?}, apart)", case.name), outcome);
        }
    }
    report.finish();
}

/// How work is split among threads must not change a single bit.
#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let group = Group::read("large");
    let (mut alone, mut crew) = (cpu(1), cpu(3));
    for case in &group.cases {
        let one = run::run(&mut alone, &group, case, Way::Plain).expect("the device runs every layer");
        let many = run::run(&mut crew, &group, case, Way::Plain).expect("the device runs every layer");
        for (one, many) in one.iter().zip(many) {
            let same = one.got.iter().zip(&many.got).all(|(one, many)| one.to_bits() == many.to_bits());
            assert!(same, "{}: {} depends on the number of threads", case.name, one.name);
        }
    }
}

/// Nothing is in the language that is not compared with PyTorch. Dropout's masks are random: its test is `dropout.rs`.
#[test]
fn every_layer_loss_and_optimizer_has_a_case() {
    let groups: Vec<Group> = ["layers", "losses", "optimizers"].map(Group::read).into();
    let cases = || groups.iter().flat_map(|group| &group.cases);
    let missing = |known: Vec<&'static str>, used: &dyn Fn(&str) -> bool| -> Vec<&'static str> {
        known.into_iter().filter(|name| !used(name)).collect()
    };
    let layers = plimsoll_plan::layers::DEFINITIONS.iter().map(|definition| definition.name).collect();
    let is_called = |name: &str| cases().any(|case| case.calls.iter().any(|call| call.layer == name));
    assert_eq!(missing(layers, &is_called), ["dropout"]);
    let losses = plimsoll_plan::losses::DEFINITIONS.iter().map(|definition| definition.name).collect();
    assert_eq!(missing(losses, &|name| cases().any(|case| case.loss.name == name)), [""; 0]);
    let optimizers = plimsoll_plan::optimizers::DEFINITIONS.iter().map(|definition| definition.name).collect();
    assert_eq!(missing(optimizers, &|name| cases().any(|case| case.optimizer.name == name)), [""; 0]);
}
