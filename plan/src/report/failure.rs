//! What to say when a network does not fit its budget: the need, the excess, what is live at the peak, and what would fit.

use std::fmt::Write;

use crate::footprint::{Footprint, Peak};
use crate::plan::Plan;
use crate::schedule::Class;
use crate::what_if::{arena_budget, largest_batch, optimizers_that_fit};

/// The message for a training budget that is exceeded; `None` where the network fits or has no such budget.
pub fn training_failure(plan: &Plan, footprint: &Footprint) -> Option<String> {
    plan.training.as_ref()?;
    let budget = plan.graph.budget.train?;
    let limit = arena_budget(budget, plan.graph.budget.reserve);
    (plan.peak_bytes() > limit).then(|| {
        let mut message = headline(plan, "training", footprint.batch, plan.peak_bytes(), budget);
        write_peak(&mut message, plan);
        write_remedies(&mut message, plan, training_remedies(plan, footprint, limit));
        message
    })
}

/// The message for an inference budget that is exceeded; `None` where the network fits or has no such budget.
pub fn inference_failure(plan: &Plan) -> Option<String> {
    let budget = plan.graph.budget.infer?;
    let limit = arena_budget(budget, plan.graph.budget.reserve);
    (plan.inference_bytes() > limit).then(|| {
        let alone = inference_alone(plan);
        let mut message = headline(plan, "inference", plan.graph.inference_batch(), plan.inference_bytes(), budget);
        write_peak(&mut message, &alone);
        let mut remedies = Vec::new();
        let batch = largest_batch(&alone, limit);
        if batch > 0 {
            remedies.push(format!("#[infer(batch = {batch})]"));
        }
        write_remedies(&mut message, plan, remedies);
        message
    })
}

/// The same network without its training part.
fn inference_alone(plan: &Plan) -> Plan {
    Plan { graph: plan.graph.clone().inference_only(), training: None, inference: plan.inference.clone() }
}

fn headline(plan: &Plan, what: &str, batch: u64, need: u64, budget: u64) -> String {
    let units = plan.graph.budget.units;
    let reserve = plan.graph.budget.reserve;
    let excess = need.saturating_add(reserve) - budget;
    let reserved = match reserve {
        0 => String::new(),
        reserve => format!(" and {} of it are reserved", units.format_declared(reserve)),
    };
    format!(
        "`{}` does not fit: {what} at batch {batch} needs {}, {} over its budget of {}{reserved}\n\n",
        plan.graph.name,
        units.format(need),
        units.format(excess),
        units.format_declared(budget),
    )
}

fn write_peak(message: &mut String, plan: &Plan) {
    let units = plan.graph.budget.units;
    let peak = Peak::new(plan);
    let mut line = |label: &str, bytes: u64| {
        writeln!(message, "{label:<21}{:>8}", units.format(bytes)).expect("strings take any text");
    };
    for &(class, bytes) in &peak.classes {
        line(class.label(), bytes);
    }
    let padding = peak.alignment_bytes + peak.idle_bytes;
    // Worth a line only where it is seen in three digits of the whole.
    if padding > plan.peak_bytes() / 1000 {
        line("alignment and gaps", padding);
    }
    writeln!(message, "peak at {}", peak.step).expect("strings take any text");
    message.push_str("the largest buffers there:\n");
    for (name, bytes) in &peak.largest {
        writeln!(message, "  {name}, {}", units.format(*bytes)).expect("strings take any text");
    }
}

fn write_remedies(message: &mut String, plan: &Plan, remedies: Vec<String>) {
    if remedies.is_empty() {
        let units = plan.graph.budget.units;
        let persistent = Peak::new(plan);
        let parameters = persistent.classes.iter().find(|(class, _)| *class == Class::Parameter).map_or(0, |c| c.1);
        let parameters = units.format(parameters);
        write!(message, "\nnothing smaller fits: the parameters alone take {parameters}\nhelp: raise the budget, or declare fewer or narrower layers")
            .expect("strings take any text");
        return;
    }
    message.push_str("\nwhat would fit:");
    for remedy in remedies {
        write!(message, "\n  {remedy}").expect("strings take any text");
    }
}

/// What would fit, each checked by planning it.
fn training_remedies(plan: &Plan, footprint: &Footprint, limit: u64) -> Vec<String> {
    let graph = &plan.graph;
    let units = graph.budget.units;
    let mut remedies = Vec::new();
    match footprint.max_batch {
        Some(batch) if batch > 0 => {
            remedies.push(format!("batch = {batch}"));
        }
        _ => {}
    }
    for (optimizer, need) in optimizers_that_fit(graph, limit) {
        let arguments = match optimizer.state().is_empty() {
            false if optimizer.name() == "sgd" => "(momentum = 0.9)",
            _ => "",
        };
        remedies.push(format!("optimizer = {}{arguments}: needs {}", optimizer.name(), units.format(need)));
    }
    let inference = plan.inference_bytes();
    if inference <= limit {
        let batch = graph.inference_batch();
        remedies.push(format!("inference only, #[infer(batch = {batch})]: needs {}", units.format(inference)));
    }
    remedies
}
