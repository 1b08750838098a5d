//! What a training step does, stage by stage.

/// One operation of a sequence. Stages are named by their index in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Computes a stage's output from its input.
    Forward {
        /// The stage.
        stage: usize,
        /// What it leaves beside the output.
        keeps: Keeps,
    },
    /// Computes the gradient of a stage's input from that of its output. What was kept for this stage is free afterwards:
    /// its input, unless the stage before has saved it, its output, what it saved and the gradient of its output.
    Backward {
        /// The stage.
        stage: usize,
    },
}

/// What a forward pass leaves beside the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keeps {
    /// Nothing: the input is free afterwards.
    Nothing,
    /// The input, a checkpoint: the stage can run forward once more.
    Input,
    /// The input and what the stage saves: the stage can run backward.
    All,
}

/// How a range of stages is reversed, with `M` for the memory that is left to a part of it.
pub(super) enum Choice<M> {
    /// The first stage keeps all; then the rest of the range is reversed.
    Keep {
        /// For the rest.
        rest: M,
    },
    /// The stages before `middle` run forward and keep nothing but the input of the first. The stages from `middle` on
    /// are reversed, then those before.
    Split {
        /// The first stage of the later part.
        middle: usize,
        /// For the later part. The earlier one has all that the range has.
        later: M,
    },
}

/// The operations that reverse all of `stages` stages, by the choice for each range `first..=last` with its memory.
pub(super) fn unfold<M: Copy>(
    stages: usize,
    memory: M,
    choose: impl Fn(usize, usize, M) -> Choice<M>,
) -> Vec<Operation> {
    enum Task<M> {
        Reverse { first: usize, last: usize, memory: M },
        Backward { stage: usize },
    }
    let mut operations = Vec::new();
    // The next task is the last one.
    let mut tasks = Vec::new();
    if stages > 0 {
        tasks.push(Task::Reverse { first: 0, last: stages - 1, memory });
    }
    while let Some(task) = tasks.pop() {
        match task {
            Task::Backward { stage } => operations.push(Operation::Backward { stage }),
            Task::Reverse { first, last, .. } if first == last => {
                operations.push(Operation::Forward { stage: first, keeps: Keeps::All });
                operations.push(Operation::Backward { stage: first });
            }
            Task::Reverse { first, last, memory } => match choose(first, last, memory) {
                Choice::Keep { rest } => {
                    operations.push(Operation::Forward { stage: first, keeps: Keeps::All });
                    tasks.push(Task::Backward { stage: first });
                    tasks.push(Task::Reverse { first: first + 1, last, memory: rest });
                }
                Choice::Split { middle, later } => {
                    operations.push(Operation::Forward { stage: first, keeps: Keeps::Input });
                    let passed = first + 1..middle;
                    operations.extend(passed.map(|stage| Operation::Forward { stage, keeps: Keeps::Nothing }));
                    tasks.push(Task::Reverse { first, last: middle - 1, memory });
                    tasks.push(Task::Reverse { first: middle, last, memory: later });
                }
            },
        }
    }
    operations
}
