//! A sequence of operations, run one by one: a check that trusts nobody. It shares no code with the solver.

use super::{Keeps, Operation, Stage};
use std::fmt;

/// What is wrong with a sequence of operations. Operations are named by their index in the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The chain has no such stage.
    NoStage {
        /// The operation.
        operation: usize,
        /// The stage it names.
        stage: usize,
    },
    /// The input of the stage is not there.
    NoInput {
        /// The operation.
        operation: usize,
        /// The stage.
        stage: usize,
    },
    /// The stage runs backward, and what it saves is not there.
    NotSaved {
        /// The operation.
        operation: usize,
        /// The stage.
        stage: usize,
    },
    /// The stage runs backward out of turn: another is next, the last stage first.
    NoGradient {
        /// The operation.
        operation: usize,
        /// The stage.
        stage: usize,
    },
    /// The stage saves what is saved already, or runs forward after its backward pass.
    Needless {
        /// The operation.
        operation: usize,
        /// The stage.
        stage: usize,
    },
    /// The sequence ends before all stages have run backward.
    Unfinished {
        /// The stages that have not.
        stages: usize,
    },
    /// Bytes or costs add up to more than a `u64` holds.
    Overflow {
        /// The operation.
        operation: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoStage { operation, stage } => write!(f, "operation {operation}: the chain has no stage {stage}"),
            Fault::NoInput { operation, stage } => {
                write!(f, "operation {operation}: the input of stage {stage} is not there")
            }
            Fault::NotSaved { operation, stage } => {
                write!(f, "operation {operation}: stage {stage} runs backward, and what it saves is not there")
            }
            Fault::NoGradient { operation, stage } => {
                write!(f, "operation {operation}: stage {stage} runs backward out of turn")
            }
            Fault::Needless { operation, stage } => {
                write!(f, "operation {operation}: stage {stage} has saved all already, or has run backward")
            }
            Fault::Unfinished { stages } => write!(f, "{stages} stages have not run backward at the end"),
            Fault::Overflow { operation } => {
                write!(f, "operation {operation}: bytes or costs add up to more than 2^64 - 1")
            }
        }
    }
}

impl std::error::Error for Fault {}

/// Runs a sequence and gives its cost and its peak in bytes, during operations and between them.
pub fn simulate(stages: &[Stage], operations: &[Operation]) -> Result<(u64, u64), Fault> {
    // Whether the input of each stage is held on its own, and whether the stage is saved, its output with it.
    let mut inputs = vec![false; stages.len() + 1];
    let mut saved = vec![false; stages.len()];
    let (inputs, saved) = (&mut inputs[..], &mut saved[..]);
    // The stages that have not run backward, the bytes held between operations.
    let mut left = stages.len();
    let mut held = 0u64;
    let (mut cost, mut peak) = (0u64, 0u64);

    for (operation, &next) in operations.iter().enumerate() {
        let add = |sum: u64, bytes: u64| sum.checked_add(bytes).ok_or(Fault::Overflow { operation });
        let stage = match next {
            Operation::Forward { stage, .. } | Operation::Backward { stage } => stage,
        };
        let Some(part) = stages.get(stage) else { return Err(Fault::NoStage { operation, stage }) };
        let input = if stage == 0 { 0 } else { stages[stage - 1].output };
        if stage > 0 && !inputs[stage] && !saved[stage - 1] {
            return Err(Fault::NoInput { operation, stage });
        }
        // The bytes that this operation adds to those held while it runs.
        let during;
        match next {
            Operation::Forward { keeps, .. } => {
                if saved[stage] && keeps == Keeps::All || stage >= left {
                    return Err(Fault::Needless { operation, stage });
                }
                cost = add(cost, part.forward_cost)?;
                let before = held;
                if keeps == Keeps::All {
                    during = part.saving_peak;
                    saved[stage] = true;
                    held = add(held, part.saved)?;
                    held = add(held, part.output)?;
                } else {
                    during = part.forward_peak;
                    if !inputs[stage + 1] {
                        inputs[stage + 1] = true;
                        held = add(held, part.output)?;
                    }
                    if keeps == Keeps::Nothing && stage > 0 && inputs[stage] {
                        inputs[stage] = false;
                        held -= input;
                    }
                }
                peak = peak.max(add(before, during)?).max(held);
            }
            Operation::Backward { .. } => {
                if stage + 1 != left {
                    return Err(Fault::NoGradient { operation, stage });
                }
                if !saved[stage] {
                    return Err(Fault::NotSaved { operation, stage });
                }
                cost = add(cost, part.backward_cost)?;
                // The gradient of the last output comes from nowhere; the others are held since the backward pass before.
                if left == stages.len() {
                    held = add(held, part.output_gradient)?;
                    peak = peak.max(held);
                }
                held -= part.saved + part.output + part.output_gradient;
                peak = peak.max(add(held, part.backward_peak)?);
                saved[stage] = false;
                if inputs[stage + 1] {
                    // A copy of the output that was held on its own. Nothing can read it any more.
                    inputs[stage + 1] = false;
                    held -= part.output;
                }
                if inputs[stage] {
                    inputs[stage] = false;
                    held -= input;
                }
                let input_gradient = if stage == 0 { 0 } else { stages[stage - 1].output_gradient };
                held = add(held, input_gradient)?;
                held = add(held, part.parameter_gradients)?;
                peak = peak.max(held);
                left = stage;
            }
        }
    }
    if left > 0 { Err(Fault::Unfinished { stages: left }) } else { Ok((cost, peak)) }
}
