//! Problems whose placement or error is known.

use crate::brute_force::lowest_height;
use crate::{buffer, tiling, training};
use plimsoll_plan::arena::{Buffer, Effort, Method, PlaceError, Problem, lower_bound, place, validate};

fn height(buffers: Vec<Buffer>) -> u64 {
    let problem = Problem { buffers, capacity: None };
    let solution = place(&problem, &Effort::THOROUGH).unwrap();
    validate(&problem, &solution).unwrap();
    assert!(solution.optimal);
    solution.height
}

#[test]
fn nothing_takes_nothing() {
    let solution = place(&Problem::default(), &Effort::THOROUGH).unwrap();
    assert_eq!((solution.height, solution.lower_bound, solution.optimal), (0, 0, true));
    assert_eq!(solution.ratio(), 1.0);
}

#[test]
fn buffers_of_one_step_pile_up() {
    assert_eq!(height(vec![buffer(3, 4, 10), buffer(3, 4, 20), buffer(3, 4, 30)]), 60);
}

#[test]
fn half_open_lifespans_share_bytes() {
    assert_eq!(height(vec![buffer(0, 1, 10), buffer(1, 2, 20), buffer(2, 3, 15)]), 20);
}

#[test]
fn nested_lifespans_are_placed_by_the_first_order() {
    let buffers = (0..50).map(|layer| buffer(layer, 100 - layer, 10 + u64::from(layer * 7 % 13))).collect();
    let problem = Problem { buffers, capacity: None };
    let solution = place(&problem, &Effort::GREEDY).unwrap();
    assert_eq!(solution.height, solution.lower_bound);
    assert_eq!(solution.method, Method::Greedy("longest first"));
}

#[test]
fn sizes_are_rounded_up_to_the_alignment() {
    let aligned = |size| Buffer { alignment: 256, ..buffer(0, 1, size) };
    assert_eq!(height(vec![aligned(1), aligned(257), aligned(256)]), 256 + 512 + 256);
}

#[test]
fn the_bound_is_not_always_met() {
    let problem = Problem {
        buffers: vec![
            buffer(0, 1, 3),
            buffer(0, 4, 3),
            buffer(1, 5, 2),
            buffer(3, 6, 1),
            buffer(4, 6, 1),
            buffer(5, 7, 4),
            buffer(6, 7, 2),
        ],
        capacity: None,
    };
    let solution = place(&problem, &Effort::THOROUGH).unwrap();
    assert_eq!((solution.lower_bound, solution.height, solution.optimal), (6, 7, true));
    assert_eq!(lowest_height(&problem), 7);
    let proven = PlaceError::OverCapacity { capacity: 6, lower_bound: 6, height: 7, proven: true };
    assert_eq!(place(&Problem { capacity: Some(6), ..problem }, &Effort::THOROUGH), Err(proven));
}

#[test]
fn buffers_of_no_bytes_lie_at_zero_and_disturb_nobody() {
    let problem = Problem { buffers: vec![buffer(0, 9, 0), buffer(0, 9, 8), buffer(0, 9, 0)], capacity: Some(8) };
    let solution = place(&problem, &Effort::THOROUGH).unwrap();
    assert_eq!((&solution.offsets[..], solution.height), (&[0, 0, 0][..], 8));
    validate(&problem, &solution).unwrap();
}

#[test]
fn mistakes_are_named() {
    let error = |buffer| place(&Problem { buffers: vec![buffer], capacity: None }, &Effort::GREEDY).unwrap_err();
    assert_eq!(
        error(buffer(3, 3, 1)).to_string(),
        "buffer 0 is never live: its lifespan is 3..3, and its end must be above its start"
    );
    assert_eq!(error(Buffer { alignment: 0, ..buffer(0, 1, 1) }), PlaceError::ZeroAlignment { buffer: 0 });
    let huge = Buffer { alignment: 256, ..buffer(0, 1, u64::MAX) };
    assert_eq!(error(huge), PlaceError::TooLarge { buffer: 0, size: u64::MAX, alignment: 256 });
    assert_eq!(lower_bound(&Problem { buffers: vec![huge], capacity: None }), Err(error(huge)));
}

#[test]
fn sizes_that_overflow_in_sum_are_an_error() {
    let problem = Problem { buffers: vec![buffer(0, 1, 1 << 62); 5], capacity: None };
    let error = place(&problem, &Effort::GREEDY).unwrap_err();
    assert_eq!(error, PlaceError::TooLarge { buffer: 3, size: 1 << 62, alignment: 1 });
}

#[test]
fn a_capacity_is_met_or_an_error() {
    let buffers = vec![buffer(0, 2, 10), buffer(1, 3, 10)];
    let problem = |capacity| Problem { buffers: buffers.clone(), capacity: Some(capacity) };
    assert_eq!(place(&problem(20), &Effort::GREEDY).unwrap().height, 20);
    assert_eq!(
        place(&problem(19), &Effort::THOROUGH),
        Err(PlaceError::OverCapacity { capacity: 19, lower_bound: 20, height: 20, proven: true })
    );
}

#[test]
fn training_is_placed_at_the_bound_or_next_to_it() {
    for (name, problem) in training::all() {
        let solution = place(&problem, &Effort::EXPANSION).unwrap();
        validate(&problem, &solution).unwrap();
        assert!(solution.ratio() < 1.001, "{name}: {}", solution.ratio());
    }
}

#[test]
fn tilings_are_placed_without_a_gap() {
    for (seed, pieces) in [(1, 40), (2, 60), (3, 80), (4, 100)] {
        let problem = tiling::tiling(seed, pieces);
        let solution = place(&problem, &Effort::THOROUGH).unwrap();
        validate(&problem, &solution).unwrap();
        assert_eq!(solution.height, tiling::SIDE, "seed {seed}");
    }
}

#[test]
fn the_search_ends_when_its_nodes_are_spent() {
    let mut problem = tiling::tiling(5, 200);
    problem.capacity = None;
    let effort = Effort { rounds: 4, nodes: 777, buffers: 1000, ..Effort::GREEDY };
    let solution = place(&problem, &effort).unwrap();
    validate(&problem, &solution).unwrap();
    assert!(solution.nodes <= 777);
    assert_eq!(place(&problem, &effort).unwrap(), solution);
}

#[test]
fn a_height_that_is_enough_ends_the_tries() {
    let mut problem = tiling::tiling(5, 200);
    problem.capacity = None;
    let first = place(&problem, &Effort { enough: u64::MAX, ..Effort::EXPANSION }).unwrap();
    validate(&problem, &first).unwrap();
    assert_eq!(first.method, Method::Greedy("longest first"));
    // Where less is asked for, it goes on.
    let lower = place(&problem, &Effort { enough: first.height - 1, ..Effort::EXPANSION }).unwrap();
    assert!(lower.height < first.height);
}
