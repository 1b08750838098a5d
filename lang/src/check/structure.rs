//! What a network, block or `forward` consists of.

use plimsoll_plan::layers;

use crate::ast::{Body, Layer, Place, Source};
use crate::report::Report;

/// Every body of the source with what messages call it.
fn bodies(source: &Source) -> impl Iterator<Item = (String, &Body)> {
    let network = source.network.iter().map(|n| ("the network".to_string(), &n.body));
    network.chain(source.blocks.iter().map(|b| (format!("block `{}`", b.name), &b.body)))
}

/// A network or block has at least one layer, or a flow.
pub(super) fn something_is_there(source: &Source, report: &mut Report) {
    for (what, body) in bodies(source) {
        if body.members.is_empty() && body.forward.is_none() && !body.incomplete {
            report.error(body.place, format!("{what} is empty"), "give it a layer, such as `linear(10)`");
        }
    }
}

/// Members in order take one value; several inputs need a `forward` that says where each goes.
pub(super) fn several_inputs_need_a_forward(source: &Source, report: &mut Report) {
    let Some(network) = &source.network else { return };
    if network.body.forward.is_none() && !network.body.incomplete && network.inputs.len() > 1 {
        let names: Vec<&str> = network.inputs.iter().map(|i| i.name.text.as_str()).collect();
        let message = format!("`{}` has {} inputs, but members in order take one", network.name, names.len());
        let help = format!("add `fn forward({}) {{ .. }}` below the members", names.join(", "));
        report.error(network.inputs[1].place, message, help);
    }
}

/// The `forward` of a network takes its declared inputs in order; that of a block takes at least one.
pub(super) fn forward_takes_the_declared_inputs(source: &Source, report: &mut Report) -> bool {
    let mut all_well = true;
    if let Some(network) = &source.network
        && let Some(forward) = &network.body.forward
        && network.inputs_known
        && forward.inputs_known
    {
        let declared: Vec<&str> = network.inputs.iter().map(|i| i.name.text.as_str()).collect();
        if declared.len() != forward.inputs.len() {
            let message = format!(
                "`forward` takes {}, but `{}` has {}",
                count(forward.inputs.len()),
                network.name,
                count(declared.len())
            );
            report.error(&forward.name, message, format!("write `fn forward({})`", declared.join(", ")));
            all_well = false;
        } else {
            for (input, position) in forward.inputs.iter().zip(0..) {
                let elsewhere = declared.iter().position(|name| *name == input.name.text);
                if elsewhere.is_some_and(|at| at != position) {
                    let message = format!("`{}` is another of the declared inputs", input.name);
                    let help = format!("inputs come in the declared order: `fn forward({})`", declared.join(", "));
                    report.error(&input.name, message, help);
                    all_well = false;
                    break;
                }
            }
        }
    }
    for block in &source.blocks {
        if let Some(forward) = &block.body.forward
            && forward.inputs.is_empty()
            && forward.inputs_known
        {
            report.error(&forward.name, "`forward` takes no input", "write `fn forward(x) { .. }`");
            all_well = false;
        }
    }
    all_well
}

fn count(inputs: usize) -> String {
    if inputs == 1 { "one input".to_string() } else { format!("{inputs} inputs") }
}

/// Beside a `forward`, members have names, by which it calls them.
pub(super) fn forward_can_reach_every_member(source: &Source, report: &mut Report) {
    for (_, body) in bodies(source) {
        if body.forward.is_none() {
            continue;
        }
        for member in &body.members {
            if let Some(dots) = member.splice {
                let message = "members spliced in beside a `forward` have no names to call them by";
                let help = "put them into a list with a name: `layers: [..a, b]`, and call `layers(x)`";
                report.error(Place::from(dots).to(member.layer.place()), message, help);
            } else if member.name.is_none()
                && let Layer::Call(call) = &member.layer
            {
                let direct = layers::find(&call.name.text).is_some_and(|d| !d.has_parameters);
                let help = if direct {
                    format!("leave it out here, and write `x.{}()` in `forward`", call.name)
                } else {
                    format!("name it: `part: {}(..)`, and write `x.part()` in `forward`", call.name)
                };
                report.error(call.place, format!("`forward` can't call `{}`: it has no name", call.name), help);
            } else if member.name.is_none() && !matches!(member.layer, Layer::Unknown) {
                let help = "name it: `layers: [..]`, and write `x.layers()` in `forward`";
                report.error(member.layer.place(), "`forward` can't call this member: it has no name", help);
            }
        }
    }
}

/// A budget for training is for a network that is trained, and a reserve leaves something of a budget.
pub(super) fn training_and_its_budget_come_together(source: &Source, report: &mut Report) {
    let Some(network) = &source.network else { return };
    if let (Some(without), None) = (&network.without, &network.train) {
        let help = "leave it out: savings are for a training step";
        report.error(without.place, "`#[without]`, but the network is not trained", help);
    }
    let Some(budget) = &network.budget else { return };
    if let (Some(train), None, None) = (&budget.train, &budget.infer, &network.train) {
        let help =
            "add `#[train(batch = 32, optimizer = adam(lr = 1e-3), loss = cross_entropy)]`, or write `infer = ..`";
        report.error(train.place, "a budget for training, but the network is not trained", help);
    }
    if let Some(recompute) = budget.recompute
        && (budget.train.is_none() || network.train.is_none())
    {
        let help = "leave it out: inference keeps nothing that could be computed again";
        report.error(recompute, "`recompute` is for a budget of training", help);
    }
    if let Some(reserve) = &budget.reserve {
        let budgets = budget.train.iter().chain(&budget.infer);
        if let Some(smallest) = budgets.map(|amount| amount.bytes).min()
            && reserve.bytes >= smallest
        {
            let message = format!(
                "the reserve of {} leaves nothing of the budget of {}",
                reserve.units.format_declared(reserve.bytes),
                budget.units().format_declared(smallest)
            );
            report.error(reserve.place, message, "reserve less: a CUDA context takes about 400 MB");
        }
    }
}
