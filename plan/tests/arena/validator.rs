//! The validator rejects placements that were broken on purpose.

use crate::buffer;
use plimsoll_plan::arena::{Buffer, Effort, Fault, Problem, Solution, place, validate};

fn sound() -> (Problem, Solution) {
    let aligned = |lower, upper, size| Buffer { alignment: 4, ..buffer(lower, upper, size) };
    let buffers = vec![aligned(0, 10, 16), aligned(2, 5, 8), aligned(5, 8, 8)];
    let problem = Problem { buffers, capacity: Some(24) };
    let solution = place(&problem, &Effort::GREEDY).unwrap();
    assert_eq!(validate(&problem, &solution), Ok(()));
    assert_eq!(solution.offsets, [0, 16, 16]);
    (problem, solution)
}

#[test]
fn an_offset_is_missing() {
    let (problem, mut solution) = sound();
    solution.offsets.pop();
    assert_eq!(validate(&problem, &solution), Err(Fault::Count { buffers: 3, offsets: 2 }));
}

#[test]
fn an_offset_is_not_aligned() {
    let (problem, mut solution) = sound();
    solution.offsets[1] = 15;
    assert_eq!(validate(&problem, &solution), Err(Fault::Misaligned { buffer: 1, offset: 15, alignment: 4 }));
}

#[test]
fn a_buffer_is_above_the_height() {
    let (problem, mut solution) = sound();
    solution.offsets[2] = 20;
    let fault = Fault::AboveHeight { buffer: 2, offset: 20, size: 8, height: 24 };
    assert_eq!(validate(&problem, &solution), Err(fault));
    solution.offsets[2] = u64::MAX - 3;
    assert!(matches!(validate(&problem, &solution), Err(Fault::AboveHeight { buffer: 2, .. })));
}

#[test]
fn the_height_is_above_the_capacity() {
    let (problem, mut solution) = sound();
    solution.height = 25;
    assert_eq!(validate(&problem, &solution), Err(Fault::OverCapacity { height: 25, capacity: 24 }));
}

#[test]
fn two_buffers_overlap() {
    let (problem, mut solution) = sound();
    solution.offsets[1] = 12;
    assert_eq!(validate(&problem, &solution), Err(Fault::Overlap { first: 0, second: 1 }));
    solution.offsets[1] = 0;
    assert_eq!(validate(&problem, &solution), Err(Fault::Overlap { first: 0, second: 1 }));
}

#[test]
fn one_buffer_lies_within_another() {
    let problem = Problem { buffers: vec![buffer(0, 2, 10), buffer(1, 3, 2)], capacity: None };
    let solution = place(&problem, &Effort::GREEDY).unwrap();
    let broken = Solution { offsets: vec![0, 4], ..solution };
    assert_eq!(validate(&problem, &broken), Err(Fault::Overlap { first: 0, second: 1 }));
}
