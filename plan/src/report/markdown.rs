//! A plan as Markdown: the page that `cargo doc` shows for a network.

use std::fmt::Write;

use super::text::totals;
use crate::footprint::{Footprint, Peak};
use crate::layer_table::LayerRow;
use crate::plan::Plan;
use crate::units::thousands;

/// The page: the totals, the picture and the table of layers.
pub fn page(plan: &Plan, footprint: &Footprint, rows: &[LayerRow]) -> String {
    let units = plan.graph.budget.units;
    let bytes = |bytes: u64| if bytes == 0 { String::new() } else { units.format(bytes) };
    let mut page = String::with_capacity(64 << 10);
    page.push_str("# Memory\n\n");
    sentence(&mut page, plan, footprint);
    page.push_str("\n| | bytes | |\n|---|---:|---:|\n");
    for (label, bytes) in totals(footprint) {
        put(&mut page, &[label, &thousands(bytes), &units.format(bytes)]);
    }
    let used = plan.savings();
    if !used.is_empty() {
        page.push_str("\n| saving | | | bytes |\n|---|---|---:|---:|\n");
        for used in used {
            let name = format!("`{}`", used.saving.name());
            let outcome = format!("{} {}", thousands(used.count as u64), used.outcome());
            put(&mut page, &[&name, used.saving.summary(), &outcome, &bytes(used.bytes)]);
        }
    }
    page.push_str("\n# The arena over one step\n\n");
    page.push_str(&plan.picture());
    page.push_str(
        "\n\n# Layers\n\n| layer | kind | output | parameters | activations | kept for backward | workspace |\n",
    );
    page.push_str("|---|---|---|---:|---:|---:|---:|\n");
    for row in rows {
        let mut shape = String::new();
        for (i, extent) in row.shape.iter().enumerate() {
            write!(shape, "{}{extent}", if i > 0 { " × " } else { "" }).expect("strings take any text");
        }
        let parameters = if row.parameters == 0 { String::new() } else { thousands(row.parameters) };
        let path = if row.path.is_empty() { String::new() } else { format!("`{}`", row.path) };
        put(
            &mut page,
            &[
                &path,
                row.kind,
                &shape,
                &parameters,
                &bytes(row.activation_bytes),
                &bytes(row.saved_bytes),
                &bytes(row.workspace_bytes),
            ],
        );
    }
    page
}

fn put(page: &mut String, cells: &[&str]) {
    page.push('|');
    for cell in cells {
        page.push_str(cell);
        page.push('|');
    }
    page.push('\n');
}

fn sentence(page: &mut String, plan: &Plan, footprint: &Footprint) {
    let units = plan.graph.budget.units;
    let what = if plan.training.is_some() { "Training" } else { "Inference" };
    let trainable = thousands(footprint.parameters);
    write!(
        page,
        "{what} at batch {} takes **{}**; inference takes {}. There are {trainable} trainable parameters.",
        footprint.batch,
        units.format(footprint.peak_bytes),
        units.format(footprint.inference_bytes),
    )
    .expect("strings take any text");
    if let Some(budget) = footprint.budget_bytes {
        let batch = footprint.max_batch.unwrap_or(0);
        write!(page, " The budget is {}, and the largest batch that fits is {batch}.", units.format_declared(budget))
            .expect("strings take any text");
    }
    if let Some(compute) = plan.recomputation() {
        write!(page, " Much is computed again to stay within it: {compute:.2}x the compute of a step.")
            .expect("strings take any text");
    }
    writeln!(page, " The peak is at {}.", Peak::new(plan).step).expect("strings take any text");
}
