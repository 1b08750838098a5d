//! Names that clash.

use std::collections::HashMap;

use plimsoll_plan::layers;

use crate::ast::{Body, Layer, Member, Name, Source};
use crate::expand::NAMES;
use crate::report::Report;

/// Inputs, consts, blocks, parameters and members each have a name of their own among their like.
pub(super) fn no_name_is_used_twice(source: &Source, report: &mut Report) {
    if let Some(network) = &source.network {
        distinct("input", network.inputs.iter().map(|i| &i.name), report);
        distinct("const", network.consts.iter().map(|c| &c.name), report);
        members(&network.body, report);
    }
    let network = source.network.as_ref().map(|n| &n.name);
    distinct("block", network.into_iter().chain(source.blocks.iter().map(|b| &b.name)), report);
    for block in &source.blocks {
        distinct("parameter", block.parameters.iter().map(|p| &p.name), report);
        members(&block.body, report);
    }
}

fn members(body: &Body, report: &mut Report) {
    list(&body.members, report);
    if let Some(forward) = &body.forward {
        distinct("input", forward.inputs.iter().map(|i| &i.name), report);
    }
}

fn list(members: &[Member], report: &mut Report) {
    distinct("member", members.iter().filter_map(|m| m.name.as_ref()), report);
    members.iter().for_each(|member| nested(&member.layer, report));
}

fn nested(layer: &Layer, report: &mut Report) {
    match layer {
        Layer::List(members, _) => list(members, report),
        Layer::Repeat(member, ..) => nested(&member.layer, report),
        Layer::If(branches, _) => branches.iter().for_each(|(_, layer)| nested(layer, report)),
        Layer::Call(_) | Layer::Unknown => {}
    }
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a Name>, report: &mut Report) {
    let mut seen: HashMap<&str, ()> = HashMap::new();
    for name in names {
        if seen.insert(&name.text, ()).is_some() {
            let help = format!("each {what} has a name of its own: call this one `{name}_2`, for example");
            report.error(name, format!("the name `{name}` is used twice"), help);
        }
    }
}

/// The network exports its consts beside those that it always has.
pub(super) fn no_const_hides_one_of_the_network(source: &Source, report: &mut Report) {
    for item in source.network.iter().flat_map(|network| &network.consts) {
        let name = item.name.text.as_str();
        if NAMES.contains(&name) || name == "summary" {
            let message = format!("`{}` is a const that every network has", item.name);
            report.error(&item.name, message, format!("choose another name, such as `MY_{}`", item.name));
        }
    }
}

/// A block with the name of a layer could never be called.
pub(super) fn no_block_has_the_name_of_a_layer(source: &Source, report: &mut Report) {
    for block in &source.blocks {
        let name = &block.name;
        if layers::find(&name.text).is_some() || ["tied", "if", "min", "max"].contains(&name.text.as_str()) {
            report.error(name, format!("`{name}` is already a layer"), "name blocks like types: `Basic`, `Bottleneck`");
        }
    }
}
