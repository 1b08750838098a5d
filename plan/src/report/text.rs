//! A plan as a table for the terminal.

use std::fmt::Write;

use crate::footprint::{Footprint, Peak};
use crate::layer_table::rows;
use crate::plan::Plan;
use crate::units::thousands;

impl Plan {
    /// The table of layers, the totals, the peak and the budget, as text of fixed width.
    pub fn summary(&self) -> String {
        let footprint = Footprint::new(self);
        let units = self.graph.budget.units;
        let mut table = vec![["layer", "kind", "output", "parameters", "activations"].map(String::from)];
        for row in rows(self) {
            table.push([
                row.path.to_string(),
                row.kind.to_string(),
                crate::shape::Shape(row.shape.to_vec()).to_string(),
                if row.parameters == 0 { String::new() } else { thousands(row.parameters) },
                if row.activation_bytes == 0 { String::new() } else { units.format(row.activation_bytes) },
            ]);
        }
        let mut text = format!("{}, batch {}\n\n", self.graph.name, footprint.batch);
        write_table(&mut text, &table);
        text.push('\n');
        for (label, bytes) in totals(&footprint) {
            writeln!(text, "{label:<28}{:>12}", units.format(bytes)).expect("strings take any text");
        }
        let used = self.savings();
        if !used.is_empty() {
            text.push('\n');
        }
        for used in used {
            let (name, count, outcome) = (used.saving.name(), used.count, used.outcome());
            let bytes = if used.bytes == 0 { String::new() } else { format!(", {} in all", units.format(used.bytes)) };
            let without = self.peak_without(used.saving).map(|bytes| units.format(bytes));
            let without = without.map_or(String::new(), |bytes| format!("; without it the peak is {bytes}"));
            writeln!(text, "{name:<20}{count:>5} {outcome}{bytes}{without}").expect("strings take any text");
        }
        if let Some(compute) = self.recomputation() {
            writeln!(text, "recompute           {compute:.2}x the compute of a step").expect("strings take any text");
        }
        let peak = Peak::new(self);
        writeln!(text, "\npeak at {}", peak.step).expect("strings take any text");
        if let Some(budget) = footprint.budget_bytes {
            let batch = footprint.max_batch.unwrap_or(0);
            let budget = units.format_declared(budget);
            writeln!(text, "budget {budget}: the largest batch that fits is {batch}").expect("strings take any text");
        }
        text
    }
}

/// The totals in the order of reports, in bytes.
pub(crate) fn totals(footprint: &Footprint) -> Vec<(&'static str, u64)> {
    vec![
        ("parameters", footprint.parameter_bytes),
        ("gradients", footprint.gradient_bytes),
        ("optimizer state", footprint.optimizer_bytes),
        ("buffers", footprint.buffer_bytes),
        ("input and targets", footprint.input_bytes),
        ("activations", footprint.activation_bytes),
        ("kept for backward", footprint.saved_bytes),
        ("largest workspace", footprint.workspace_bytes),
        ("hand formula", footprint.textbook_bytes),
        ("inference allocates", footprint.inference_bytes),
        ("lower bound", footprint.lower_bound_bytes),
        ("peak: what is allocated", footprint.peak_bytes),
    ]
}

/// Columns as wide as their widest cell; numbers, the last two columns, to the right.
fn write_table<const N: usize>(text: &mut String, table: &[[String; N]]) {
    let mut widths = [0; N];
    for row in table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for row in table {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            match i + 2 >= N {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            }
            .expect("strings take any text");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
