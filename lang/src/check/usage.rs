//! What is declared and never used.

use std::collections::HashSet;

use plimsoll_plan::layers;

use crate::ast::{Body, Source};
use crate::report::Report;

/// Whatever is declared is used; names that start with `_` may wait.
pub(super) fn everything_is_used(source: &Source, report: &mut Report) {
    if let Some(network) = &source.network {
        body(&network.body, report);
    }
    let unreadable = source.network.as_ref().is_none_or(|network| network.body.incomplete)
        || source.blocks.iter().any(|block| block.body.incomplete);
    let mut seen: HashSet<&String> = source.network.iter().map(|network| &network.name.text).collect();
    for block in &source.blocks {
        // One that has the name of the network, of another, or of a layer, can't be called, which is reported already.
        let reachable = seen.insert(&block.name.text) && layers::find(&block.name.text).is_none();
        if !block.used && reachable && !unreadable && !block.name.text.starts_with('_') {
            let name = &block.name;
            let call = if block.parameters.is_empty() { name.text.clone() } else { format!("{name}(..)") };
            report.error(
                name,
                format!("block `{name}` is never used"),
                format!("use it as a layer, `{call}`, or remove it"),
            );
        }
        body(&block.body, report);
    }
}

fn body(body: &Body, report: &mut Report) {
    let Some(forward) = &body.forward else { return };
    // What follows a mistake in `forward` may have used anything.
    if forward.incomplete || body.incomplete || forward.output.is_none() {
        return;
    }
    for member in &body.members {
        if let Some(name) = &member.name
            && !member.used
            && !name.text.starts_with('_')
        {
            let help = format!("call it, `x.{name}()`, or remove it");
            report.error(name, format!("member `{name}` is never used in `forward`"), help);
        }
    }
    for input in &forward.inputs {
        let name = &input.name;
        if !input.used && forward.inputs_known && !name.text.starts_with('_') {
            let help = format!("use it, or name it `_{name}`");
            report.error(name, format!("the input `{name}` is never used"), help);
        }
    }
    for statement in &forward.lets {
        let name = &statement.name;
        if !statement.used && !name.text.starts_with('_') {
            let help = format!("use it, remove it, or name it `_{name}`");
            report.error(name, format!("`{name}` is bound and never used"), help);
        }
    }
}
