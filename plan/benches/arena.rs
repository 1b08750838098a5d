//! How long placement takes, and how far above the lower bound it ends.
//!
//! ```text
//! cargo bench -p plimsoll-plan --bench arena --profile dev
//! ```
//!
//! Without optimization, as in a macro.

#[path = "../tests/arena/training.rs"]
mod training;

use std::time::Instant;

use plimsoll_plan::arena::{Effort, place, validate};

fn main() {
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
