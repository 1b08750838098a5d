//! Rules that concern several parts of the syntax tree, each a function under one sentence of prose. What concerns one
//! token is checked where that token is read, resolved or evaluated.

mod names;
mod recursion;
mod structure;
mod usage;

use crate::ast::Source;
use crate::report::Report;

/// Checks everything but what depends on shapes. `false`: there is no use in lowering what is there, or no end to it.
pub fn check(source: &Source, report: &mut Report) -> bool {
    names::no_name_is_used_twice(source, report);
    names::no_const_hides_one_of_the_network(source, report);
    names::no_block_has_the_name_of_a_layer(source, report);
    structure::something_is_there(source, report);
    structure::several_inputs_need_a_forward(source, report);
    let inputs_match = structure::forward_takes_the_declared_inputs(source, report);
    structure::forward_can_reach_every_member(source, report);
    structure::training_and_its_budget_come_together(source, report);
    usage::everything_is_used(source, report);
    let finite = recursion::no_block_contains_itself(source, report);
    finite && inputs_match
}
