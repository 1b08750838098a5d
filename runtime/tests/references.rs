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
use run::Way;

/// Runs every case of a group in these ways.
fn check(group: &str, ways: &[Way]) {
    let group = Group::read(group);
    let mut report = Report::default();
    for case in &group.cases {
        for &way in ways.iter().filter(|way| way.suits(case)) {
            report.case(&format!("{} ({way:?})", case.name), run::run(&group, case, way));
        }
    }
    report.finish();
}

#[test]
fn layers_alone() {
    check("layers", &[Way::Plain, Way::SmallBatch, Way::Twice]);
}

#[test]
fn losses() {
    check("losses", &[Way::Plain, Way::SmallBatch, Way::Twice]);
}

#[test]
fn optimizers() {
    check("optimizers", &[Way::Plain]);
}

#[test]
fn networks() {
    check("networks", &[Way::Plain, Way::SmallBatch]);
}
