//! Orders of actions that are none for their network: each is refused, and says which action is out of place.

mod common;

use plimsoll_plan::lower::Facts;
use plimsoll_plan::order::Action;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::strategy::Strategy;

/// What a residual network says of its plain order after a change.
fn changed(change: impl FnOnce(&mut Vec<Action>)) -> Result<Plan, String> {
    let graph = common::residual(2);
    let mut strategy = Strategy::plain(&Facts::new(&graph, true));
    change(&mut strategy.order);
    Plan::with_strategy(graph, strategy).map_err(|error| error.to_string())
}

fn assert_refused(result: Result<Plan, String>, part: &str) {
    let message = result.expect_err("the order is wrong");
    assert!(message.contains(part), "{message}");
}

#[test]
fn as_it_is() {
    changed(|_| {}).unwrap();
    // Computing something again that is there already is of no use, and does no harm.
    changed(|order| order.insert(5, Action::Forward(2))).unwrap();
}

#[test]
fn a_layer_before_its_input() {
    assert_refused(changed(|order| order.swap(3, 4)), "Forward(4) is out of order");
}

#[test]
fn the_loss_before_the_output() {
    let result = changed(|order| {
        let loss = order.iter().position(|action| *action == Action::Loss).unwrap();
        order.swap(loss - 1, loss);
    });
    assert_refused(result, "Loss is out of order");
}

#[test]
fn a_gradient_before_it_is_complete() {
    let result = changed(|order| {
        let last = order.len() - 1;
        order.swap(last - 1, last);
    });
    assert_refused(result, "Backward(0) is out of order");
}

/// Its weight has been updated by then.
#[test]
fn a_layer_again_after_its_backward_pass() {
    assert_refused(changed(|order| order.push(Action::Forward(0))), "Forward(0) is out of order");
}

#[test]
fn a_backward_pass_twice() {
    assert_refused(changed(|order| order.push(Action::Backward(0))), "Backward(0) is out of order");
}

#[test]
fn something_left_out() {
    assert_refused(changed(|order| order.truncate(order.len() - 1)), "leaves something out");
}

#[test]
fn a_node_that_there_is_not() {
    assert_refused(changed(|order| order.push(Action::Forward(1_000_000))), "Forward(1000000) is out of order");
}
