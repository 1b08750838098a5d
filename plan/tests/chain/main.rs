//! Recomputation in chains, as a caller sees it.

mod brute_force;
mod known;
mod long;
mod random;
mod simulation;
mod stages;

use plimsoll_plan::chain::{Effort, Keeps, Operation};
use stages::stage;

/// As fine as can be: slots of a byte for the small chains of tests, no stages merged.
const EXACT: Effort = Effort { slots: 400, stages: usize::MAX };

fn forward(stage: usize, keeps: Keeps) -> Operation {
    Operation::Forward { stage, keeps }
}

fn backward(stage: usize) -> Operation {
    Operation::Backward { stage }
}

/// Segments of `length` stages: the inputs of all but the last are kept and their stages run forward twice. Chen, Xu,
/// Zhang and Guestrin, "Training Deep Nets with Sublinear Memory Cost" (2016, arXiv:1604.06174).
fn segments(stages: usize, length: usize) -> Vec<Operation> {
    let starts: Vec<_> = (0..stages).step_by(length).collect();
    let mut operations = Vec::new();
    for &start in &starts[..starts.len() - 1] {
        operations.push(forward(start, Keeps::Input));
        operations.extend((start + 1..start + length).map(|stage| forward(stage, Keeps::Nothing)));
    }
    for &start in starts.iter().rev() {
        let end = stages.min(start + length);
        operations.extend((start..end).map(|stage| forward(stage, Keeps::All)));
        operations.extend((start..end).rev().map(backward));
    }
    operations
}
