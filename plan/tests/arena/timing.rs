//! Measurements, to be run by hand: `cargo test -p plimsoll-plan --test arena timing -- --ignored --nocapture`.

use crate::training;
use plimsoll_plan::arena::{Effort, place, validate};
use std::time::Instant;

#[test]
#[ignore = "prints times"]
fn timing() {
    println!(
        "{:24}{:>8}{:>16}{:>16}{:>9}{:>8}{:>10}  method",
        "problem", "buffers", "bound", "height", "ratio", "nodes", "ms"
    );
    for (name, problem) in training::all() {
        let start = Instant::now();
        let solution = place(&problem, &Effort::EXPANSION).unwrap();
        let time = start.elapsed().as_secs_f64() * 1e3;
        validate(&problem, &solution).unwrap();
        println!(
            "{name:24}{:>8}{:>16}{:>16}{:>9.5}{:>8}{time:>10.2}  {:?}",
            problem.buffers.len(),
            solution.lower_bound,
            solution.height,
            solution.ratio(),
            solution.nodes,
            solution.method
        );
    }
}
