//! The validator finds what is broken on purpose: each test damages a good plan in one way.

mod common;

use plimsoll_plan::graph::Graph;
use plimsoll_plan::plan::{Plan, Planned};
use plimsoll_plan::schedule::{Access, BufferId, Operand, Role, StepKind};
use plimsoll_plan::strategy::Saving;
use plimsoll_plan::validate::validate;

/// VGG-16 at batch 2, with its training part damaged.
fn damaged(damage: impl FnOnce(&mut Planned)) -> Result<(), String> {
    damaged_of(common::vgg16(2), damage)
}

fn damaged_of(graph: Graph, damage: impl FnOnce(&mut Planned)) -> Result<(), String> {
    let mut plan = Plan::new(graph).unwrap();
    assert_eq!(validate(&plan), Ok(()));
    damage(plan.training.as_mut().unwrap());
    validate(&plan).map_err(|fault| fault.to_string())
}

fn assert_fault(result: Result<(), String>, part: &str) {
    let message = result.expect_err("the damage must be found");
    assert!(message.contains(part), "{message}");
}

/// The transient buffers that are live at the peak.
fn live(planned: &Planned) -> Vec<usize> {
    let time = planned.placement.peak_step as u32;
    let buffers = &planned.schedule.buffers;
    (planned.schedule.persistent..buffers.len())
        .filter(|&i| buffers[i].lower <= time && time < buffers[i].upper)
        .collect()
}

#[test]
fn two_live_buffers_at_one_place() {
    let result = damaged(|planned| {
        let live = live(planned);
        planned.placement.offsets[live[0]] = planned.placement.offsets[live[1]];
    });
    assert_fault(result, "share bytes");
}

#[test]
fn two_live_buffers_that_change_places() {
    let result = damaged(|planned| {
        let mut live = live(planned);
        live.sort_by_key(|&i| planned.placement.sizes[i]);
        planned.placement.offsets.swap(live[0], live[live.len() - 1]);
    });
    assert!(result.is_err());
}

#[test]
fn an_offset_that_is_not_aligned() {
    let result = damaged(|planned| *planned.placement.offsets.last_mut().unwrap() += 4);
    assert_fault(result, "multiple of 256");
}

#[test]
fn a_buffer_beyond_the_end() {
    let result = damaged(|planned| {
        planned.placement.length -= 256;
        planned.placement.lower_bound -= 256;
    });
    assert_fault(result, "outside");
}

#[test]
fn an_arena_shorter_than_its_bound() {
    assert_fault(damaged(|planned| planned.placement.length -= 256), "shorter than the live bytes");
    assert_fault(damaged(|planned| planned.placement.length += 1), "uneven");
}

#[test]
fn a_transient_buffer_among_the_persistent_ones() {
    let result = damaged(|planned| *planned.placement.offsets.last_mut().unwrap() = 0);
    assert_fault(result, "among the persistent");
}

#[test]
fn a_lifespan_that_ends_too_early() {
    let result = damaged(|planned| {
        let i = live(planned)[0];
        planned.schedule.buffers[i].upper -= 1;
    });
    assert_fault(result, "outside its lifespan");
}

#[test]
fn a_missing_step() {
    let result = damaged(|planned| {
        let relu = planned.schedule.steps.iter().position(|step| step.kind == StepKind::Forward { node: 1 });
        planned.schedule.steps.remove(relu.unwrap());
    });
    assert!(result.is_err());
}

#[test]
fn steps_in_another_order() {
    // The update of a weight before the gradient is there.
    let result = damaged(|planned| {
        let update = planned.schedule.steps.iter().position(|step| matches!(step.kind, StepKind::Update { .. }));
        planned.schedule.steps.swap(update.unwrap(), 0);
    });
    assert!(result.is_err());
}

#[test]
fn an_activation_that_is_overwritten_while_it_is_needed() {
    // The second convolution writes over the first one's output, which its own backward step reads.
    let result = damaged(|planned| {
        let second = planned.schedule.steps.iter().position(|step| step.kind == StepKind::Forward { node: 2 }).unwrap();
        let input = planned.schedule.steps[second].buffer(Role::Input(0)).unwrap();
        let output = planned.schedule.steps[second].buffer(Role::Output).unwrap();
        for step in &mut planned.schedule.steps {
            for operand in step.operands.iter_mut().filter(|operand| operand.buffer == output) {
                operand.buffer = input;
            }
        }
    });
    assert_fault(result, "needs");
}

#[test]
fn a_gradient_that_is_added_to_nothing() {
    let result = damaged_of(common::vgg16(2).without(&Saving::ALL), |planned| {
        let step =
            planned.schedule.steps.iter_mut().find(|step| matches!(step.kind, StepKind::Backward { .. })).unwrap();
        for operand in step.operands.iter_mut().filter(|operand| matches!(operand.role, Role::ParameterGradient(_))) {
            operand.access = Access::Update;
        }
    });
    assert_fault(result, "finds Nothing");
}

/// The first step that adds a gradient to a momentum, and which of its operands does.
fn added_to_momentum(planned: &Planned) -> (usize, usize) {
    let adds = |operand: &Operand| matches!(operand.role, Role::ParameterGradient(_));
    let steps = planned.schedule.steps.iter().enumerate();
    steps.filter_map(|(i, step)| Some((i, step.operands.iter().position(adds)?))).next().unwrap()
}

#[test]
fn a_gradient_that_takes_the_place_of_the_momentum() {
    let result = damaged(|planned| {
        let (step, operand) = added_to_momentum(planned);
        planned.schedule.steps[step].operands[operand].access = Access::Write;
    });
    assert!(result.is_err());
}

#[test]
fn a_gradient_that_is_added_to_anothers_momentum() {
    let result = damaged(|planned| {
        let (step, operand) = added_to_momentum(planned);
        let other = planned.schedule.persistent as u32 - 1;
        let buffer = &mut planned.schedule.steps[step].operands[operand].buffer;
        *buffer = BufferId(if buffer.0 == other { other - 1 } else { other });
    });
    assert_fault(result, "needs");
}

#[test]
fn an_update_without_a_gradient() {
    let result = damaged(|planned| {
        let (step, _) = added_to_momentum(planned);
        planned.schedule.steps.remove(step);
    });
    assert!(result.is_err());
}

#[test]
fn a_weight_that_is_read_after_its_update() {
    let result = damaged(|planned| {
        let steps = &mut planned.schedule.steps;
        let last = steps.iter().rposition(|step| matches!(step.kind, StepKind::Forward { .. })).unwrap();
        let again = steps[last].clone();
        steps.push(again);
    });
    assert!(result.is_err());
}

#[test]
fn running_statistics_that_move_twice() {
    let resnet = common::residual(4);
    let result = damaged_of(resnet, |planned| {
        let steps = &mut planned.schedule.steps;
        let again = steps.iter().position(|step| matches!(step.kind, StepKind::Recompute { .. })).unwrap();
        let StepKind::Recompute { node } = steps[again].kind else { unreachable!() };
        let first = steps.iter().find(|step| step.kind == StepKind::Forward { node }).unwrap();
        let running = first.operands.iter().copied().filter(|operand| operand.access == Access::Update);
        let running: Vec<Operand> = running.collect();
        assert!(!running.is_empty());
        steps[again].operands.extend(running);
    });
    assert_fault(result, "needs");
}

#[test]
fn a_step_that_lacks_what_it_reads() {
    // The index of a maximum, without which pooling knows no way back.
    let result = damaged(|planned| {
        let mut steps = planned.schedule.steps.iter_mut();
        let saved = |operand: &Operand| matches!(operand.role, Role::Saved(_));
        let backward =
            steps.find(|step| matches!(step.kind, StepKind::Backward { .. }) && step.operands.iter().any(saved));
        backward.unwrap().operands.retain(|operand| !saved(operand));
    });
    assert_fault(result, "lacks Saved(0)");
}

/// The first step of that kind that reads the two parts of the concat, which no step makes.
fn reads_parts(planned: &mut Planned, is_kind: impl Fn(StepKind) -> bool) -> &mut Vec<Operand> {
    let has_two = |operands: &[Operand]| operands.iter().any(|operand| operand.role == Role::Input(1));
    let mut steps = planned.schedule.steps.iter_mut();
    &mut steps.find(|step| is_kind(step.kind) && has_two(&step.operands)).unwrap().operands
}

#[test]
fn a_part_that_is_missing() {
    let result = damaged_of(common::side_by_side(2), |planned| {
        reads_parts(planned, |kind| matches!(kind, StepKind::Forward { .. })).retain(|o| o.role != Role::Input(1));
    });
    assert_fault(result, "lacks Input(1)");
    let result = damaged_of(common::side_by_side(2), |planned| {
        reads_parts(planned, |kind| matches!(kind, StepKind::Backward { .. })).retain(|o| o.role != Role::Input(1));
    });
    assert_fault(result, "can't read 1 parts of 2");
}

#[test]
fn parts_in_another_order() {
    let kinds: [fn(StepKind) -> bool; 2] =
        [|kind| matches!(kind, StepKind::Forward { .. }), |kind| matches!(kind, StepKind::Backward { .. })];
    for is_kind in kinds {
        let result = damaged_of(common::side_by_side(2), |planned| {
            for operand in reads_parts(planned, is_kind) {
                operand.role = match operand.role {
                    Role::Input(0) => Role::Input(1),
                    Role::Input(1) => Role::Input(0),
                    role => role,
                };
            }
        });
        assert_fault(result, "needs Value");
    }
}

/// A concat that is read by what needs it whole, and whose step is not there.
#[test]
fn parts_for_a_layer_that_needs_the_whole() {
    let mut chain = common::Chain::new("Whole", &[3, 8, 8]);
    let left = chain.push("relu", &[]).value;
    let right = chain.push("relu", &[]).value;
    chain.value = chain.builder.apply("both", common::layer("concat", &[]), &[left, right]).unwrap();
    chain.push("silu", &[]).push("flatten", &[]).push("linear", &[("out_features", common::int(10))]);
    let result = damaged_of(chain.train(2, common::momentum()), |planned| {
        let steps = &mut planned.schedule.steps;
        let concat = steps.iter().position(|step| step.kind == StepKind::Forward { node: 2 }).unwrap();
        let reads = steps[concat].operands.clone();
        steps[concat].operands.clear();
        steps[concat].kind = StepKind::Recompute { node: 0 };
        let silu = steps.iter_mut().find(|step| step.kind == StepKind::Forward { node: 3 }).unwrap();
        silu.operands.retain(|operand| operand.role == Role::Output);
        silu.operands.extend(reads.iter().filter(|operand| operand.access == Access::Read));
    });
    assert!(result.is_err());
}
