//! Compares CUDA with what PyTorch computes, as `references.rs` compares the CPU: the same cases, the same ways, the same
//! tolerance. Once with cuBLAS, once with our own kernel in its place.

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
use plimsoll_runtime::Cuda;
use plimsoll_runtime::proof::Poisoned;
use run::Way;

/// Runs every case of a group in these ways.
fn check(group: &str, ways: &[Way], cuda: Cuda) {
    let group = Group::read(group);
    let mut report = Report::default();
    let mut device = Poisoned::new(cuda);
    for case in &group.cases {
        for &way in ways.iter().filter(|way| way.suits(case)) {
            let outcome = run::run(&mut device, &group, case, way);
            report.case(&format!("{} ({way:?})", case.name), outcome);
        }
    }
    report.finish();
}

fn cuda() -> Cuda {
    Cuda::new(0).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn layers_alone() {
    check("layers", &[Way::Plain, Way::SmallBatch, Way::Twice], cuda());
}

#[test]
fn large_tensors() {
    check("large", &[Way::Plain, Way::Twice], cuda());
}

#[test]
fn losses() {
    check("losses", &[Way::Plain, Way::SmallBatch, Way::Twice], cuda());
}

#[test]
fn optimizers() {
    check("optimizers", &[Way::Plain], cuda());
}

#[test]
fn networks() {
    check("networks", &[Way::Plain, Way::SmallBatch], cuda());
}
