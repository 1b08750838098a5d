//! Sequences of operations, right and wrong.

use crate::{backward, forward, stage};
use plimsoll_plan::chain::Keeps::{All, Input, Nothing};
use plimsoll_plan::chain::{Fault, Operation, Stage, simulate};

/// Three stages whose bytes can be told apart in a sum.
fn chain() -> [Stage; 3] {
    let peaks = |forward_peak, saving_peak, backward_peak| Stage {
        forward_peak,
        saving_peak,
        backward_peak,
        ..Stage::default()
    };
    [
        Stage { forward_cost: 1, backward_cost: 10, output: 1, output_gradient: 2, saved: 4, ..peaks(1, 5, 7) },
        Stage { forward_cost: 2, backward_cost: 20, output: 10, output_gradient: 20, saved: 40, ..peaks(10, 50, 72) },
        Stage { forward_cost: 4, backward_cost: 40, output: 100, output_gradient: 0, saved: 0, ..peaks(100, 100, 120) },
    ]
}

#[test]
fn a_sequence_by_hand() {
    let operations = [
        forward(0, Input),   // 1
        forward(1, Nothing), // 1 + 10, then 10
        forward(2, All),     // 10 + 100
        backward(2),         // 10 + 120, then the gradient of 20
        forward(0, All),     // 20 + 5
        forward(1, All),     // 20 + 5 + 50
        backward(1),         // 5 + 72
        backward(0),         // 7
    ];
    assert_eq!(simulate(&chain(), &operations), Ok((70 + 7 + 3, 130)));
    assert_eq!(simulate(&chain()[..2], &[forward(0, All), forward(1, All), backward(1), backward(0)]), Ok((33, 77)));
}

#[test]
fn what_is_held_counts_where_a_peak_is_below_it() {
    let stages = [Stage { saved: 7, output: 3, output_gradient: 2, ..Stage::default() }];
    assert_eq!(simulate(&stages, &[forward(0, All), backward(0)]), Ok((0, 12)));
}

#[test]
fn gradients_of_parameters_stay_to_the_end() {
    let mut stages = chain();
    stages[1].parameter_gradients = 1000;
    stages[0].parameter_gradients = 5000;
    // The last stage runs backward before there are any, the first beside those of the second, and 6000 are left.
    let operations = [0, 1, 2].map(|stage| forward(stage, All)).into_iter().chain([2, 1, 0].map(backward));
    assert_eq!(simulate(&stages, &operations.collect::<Vec<_>>()), Ok((77, 6000)));
    stages[0].backward_peak = 5007;
    let operations = [forward(0, All), forward(1, All), forward(2, All), backward(2), backward(1), backward(0)];
    assert_eq!(simulate(&stages, &operations), Ok((77, 6007)));
}

#[track_caller]
fn faulty(operations: &[Operation], fault: Fault, message: &str) {
    assert_eq!(simulate(&chain(), operations), Err(fault.clone()));
    assert_eq!(fault.to_string(), message);
}

#[test]
fn sequences_out_of_order_are_faults() {
    faulty(
        &[forward(1, All)],
        Fault::NoInput { operation: 0, stage: 1 },
        "operation 0: the input of stage 1 is not there",
    );
    faulty(
        &[forward(0, Input), forward(1, Nothing), forward(1, All)],
        Fault::NoInput { operation: 2, stage: 1 },
        "operation 2: the input of stage 1 is not there",
    );
    faulty(
        &[forward(0, All), forward(3, All)],
        Fault::NoStage { operation: 1, stage: 3 },
        "operation 1: the chain has no stage 3",
    );
    faulty(
        &[forward(0, All), backward(0)],
        Fault::NoGradient { operation: 1, stage: 0 },
        "operation 1: stage 0 runs backward out of turn",
    );
    faulty(
        &[forward(0, All), forward(1, All), forward(2, Input), backward(2)],
        Fault::NotSaved { operation: 3, stage: 2 },
        "operation 3: stage 2 runs backward, and what it saves is not there",
    );
    faulty(
        &[forward(0, All), forward(0, All)],
        Fault::Needless { operation: 1, stage: 0 },
        "operation 1: stage 0 has saved all already, or has run backward",
    );
    faulty(
        &[forward(0, All), forward(1, All), forward(2, All), backward(2), forward(2, Input)],
        Fault::Needless { operation: 4, stage: 2 },
        "operation 4: stage 2 has saved all already, or has run backward",
    );
    faulty(&[forward(0, All)], Fault::Unfinished { stages: 3 }, "3 stages have not run backward at the end");
}

#[test]
fn a_sum_past_a_u64_is_a_fault() {
    let half = Stage { saved: 1 << 63, ..stage(1, 0, 0) };
    let operations = [forward(0, All), forward(1, All)];
    assert_eq!(simulate(&[half, half], &operations), Err(Fault::Overflow { operation: 1 }));
    let costly = stage(u64::MAX / 2, 0, 0);
    assert_eq!(simulate(&[costly; 2], &operations), Err(Fault::Unfinished { stages: 2 }));
    let costly = Stage { forward_cost: u64::MAX, ..stage(1, 0, 0) };
    assert_eq!(simulate(&[costly; 2], &operations), Err(Fault::Overflow { operation: 1 }));
}
