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
use plimsoll_runtime::proof::Poisoned;
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
