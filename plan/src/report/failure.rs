//! What to say when a network does not fit its budget: the need, the excess, what is live at the peak, and what would fit.

use std::fmt::Write;

use crate::footprint::{Footprint, Peak};
use crate::graph::{Budget, Graph, MAX_BATCH};
use crate::optimizers::Optimizer;
use crate::plan::Plan;
use crate::what_if::{arena_budget, largest_batch, lighter_optimizers};

/// The message for a training budget that is exceeded; `None` where the network fits or has no such budget.
pub fn training_failure(plan: &Plan, footprint: &Footprint) -> Option<String> {
    let training = plan.training.as_ref()?;
    let budget = plan.graph.budget.train?;
    let limit = arena_budget(budget, plan.graph.budget.reserve);
    (plan.peak_bytes() > limit).then(|| {
        let mut what = format!("training at batch {}", footprint.batch);
        if plan.graph.budget.recompute {
            what += ", with `recompute`,";
        }
        if training.placement.length < plan.peak_bytes() {
            what += &format!(" with evaluation at batch {}", plan.graph.inference_batch());
        }
        let mut message = headline(plan, &what, plan.peak_bytes(), budget);
        write_peak(&mut message, plan);
        let again = recompute_remedy(plan, limit);
        let recomputes = again.as_ref().is_some_and(|remedy| remedy.bytes <= limit);
        let too_much = again.as_ref().filter(|_| !recomputes).map(|remedy| remedy.bytes);
        let remedies = training_remedies(plan, footprint, limit, again.filter(|_| recomputes));
        write_remedies(&mut message, plan, remedies, || {
            let sgd = Optimizer::by_name("sgd").expect("there is such an optimizer");
            let least = plan.graph.clone().batch(1).infer_batch(1).optimizer(sgd);
            format!("`batch = 1` with `optimizer = sgd` needs {}", need(plan, least))
        });
        if let Some(bytes) = too_much {
            let needs = plan.graph.budget.units.format(bytes);
            let batch = footprint.batch;
            write!(message, "\nthe smallest need found at batch {batch}, with `recompute`: {needs}")
                .expect("strings take any text");
        }
        message
    })
}

/// The message for an inference budget that is exceeded; `None` where the network fits or has no such budget.
pub fn inference_failure(plan: &Plan) -> Option<String> {
    let budget = plan.graph.budget.infer?;
    let limit = arena_budget(budget, plan.graph.budget.reserve);
    (plan.inference_bytes() > limit).then(|| {
        let alone = inference_alone(plan);
        let what = format!("inference at batch {}", plan.graph.inference_batch());
        let mut message = headline(plan, &what, plan.inference_bytes(), budget);
        write_peak(&mut message, &alone);
        let batch = largest_batch(&alone, limit);
        let smaller = alone.graph.clone().batch(batch);
        let remedy = Remedy::new(format!("#[infer(batch = {batch})]"), smaller, limit).filter(|_| batch > 0);
        write_remedies(&mut message, plan, remedy.into_iter().collect(), || {
            format!("`#[infer(batch = 1)]` needs {}", need(plan, alone.graph.clone().batch(1)))
        });
        message
    })
}

/// The same network without its training part.
fn inference_alone(plan: &Plan) -> Plan {
    Plan { graph: plan.graph.clone().inference_only(), training: None, inference: plan.inference.clone() }
}

fn headline(plan: &Plan, what: &str, need: u64, budget: u64) -> String {
    let units = plan.graph.budget.units;
    let reserve = plan.graph.budget.reserve;
    let excess = need.saturating_add(reserve) - budget;
    let less = match reserve {
        0 => String::new(),
        reserve => format!(" less a reserve of {}", units.format_declared(reserve)),
    };
    format!(
        "`{}` does not fit: {what} needs {}, {} over its budget of {}{less}\n\n",
        plan.graph.name,
        units.format(need),
        units.format(excess),
        units.format_declared(budget),
    )
}

fn write_peak(message: &mut String, plan: &Plan) {
    let units = plan.graph.budget.units;
    let peak = Peak::new(plan);
    let padding = peak.alignment_bytes + peak.idle_bytes;
    let classes = peak.classes.iter().map(|(class, bytes)| (class.label(), *bytes));
    for (label, bytes) in classes.chain([("alignment and gaps", padding)]) {
        // Worth a line only where it is seen in three digits of the whole.
        if bytes > plan.peak_bytes() / 1000 {
            writeln!(message, "{label:<21}{:>8}", units.format(bytes)).expect("strings take any text");
        }
    }
    writeln!(message, "peak at {}, where the largest buffers are", peak.step).expect("strings take any text");
    for (name, bytes) in &peak.largest {
        let name = match name.split_once(' ') {
            Some((path, what)) => format!("`{path}` {what}"),
            None => format!("`{name}`"),
        };
        writeln!(message, "  {name}: {}", units.format(*bytes)).expect("strings take any text");
    }
}

fn write_remedies(message: &mut String, plan: &Plan, remedies: Vec<Remedy>, least: impl FnOnce() -> String) {
    if remedies.is_empty() {
        let least = least();
        write!(message, "\nnothing smaller fits: {least}\nhelp: raise the budget, or declare fewer or narrower layers")
            .expect("strings take any text");
        return;
    }
    message.push_str("\nwhat would fit:");
    for Remedy { change, bytes, compute } in remedies {
        let needs = plan.graph.budget.units.format(bytes);
        write!(message, "\n  {change}: needs {needs}").expect("strings take any text");
        if let Some(compute) = compute {
            // A price is rounded up.
            let compute = (compute * 100.0 - 1e-9).ceil() / 100.0;
            write!(message, ", {compute:.2}x the compute").expect("strings take any text");
        }
    }
}

/// What a network needs, for people.
fn need(plan: &Plan, graph: Graph) -> String {
    graph.plan().map_or("more".to_string(), |least| plan.graph.budget.units.format(least.peak_bytes()))
}

/// A change with which the network fits.
struct Remedy {
    /// As the user would write it.
    change: String,
    /// What the network needs then.
    bytes: u64,
    /// The compute of a step then, over that of now, where it is more.
    compute: Option<f64>,
}

impl Remedy {
    /// `change`, if the network that it leads to stays within the limit, which planning it tells.
    fn new(change: String, graph: Graph, limit: u64) -> Option<Remedy> {
        let bytes = graph.plan().ok()?.peak_bytes();
        (bytes <= limit).then_some(Remedy { change, bytes, compute: None })
    }
}

/// What would fit, each checked by planning it.
fn training_remedies(plan: &Plan, footprint: &Footprint, limit: u64, again: Option<Remedy>) -> Vec<Remedy> {
    let graph = &plan.graph;
    let batch = footprint.max_batch.unwrap_or(0);
    let mut remedies = Vec::new();
    if batch > 0 {
        remedies.extend(Remedy::new(format!("batch = {batch}"), graph.clone().batch(batch), limit));
    }
    remedies.extend(again);
    remedies.extend(evaluation_remedy(plan, limit));
    let no_batch_fits = remedies.is_empty();
    for (text, optimizer) in lighter_optimizers(graph) {
        let changed = graph.clone().optimizer(optimizer);
        let remedy = Remedy::new(format!("optimizer = {text}"), changed.clone(), limit);
        if remedy.is_some() || !no_batch_fits {
            remedies.extend(remedy);
        } else if let Ok(other) = changed.plan()
            && let batch @ 1.. = largest_batch(&other, limit)
        {
            remedies.extend(Remedy::new(format!("optimizer = {text}, batch = {batch}"), changed.batch(batch), limit));
        }
    }
    remedies.extend(inference_remedy(plan, limit));
    remedies
}

/// The network with activations computed again, whether or not it fits then. Nothing where training alone fits, and where
/// that is declared already.
fn recompute_remedy(plan: &Plan, limit: u64) -> Option<Remedy> {
    let training = plan.training.as_ref()?;
    if plan.graph.budget.recompute || training.placement.length <= limit {
        return None;
    }
    let again = plan.graph.clone().recompute().plan().ok()?;
    let compute = again.training.as_ref()?.compute(&plan.graph) / training.compute(&plan.graph);
    Some(Remedy { change: budget_with_recompute(plan), bytes: again.peak_bytes(), compute: Some(compute) })
}

/// The budget as it is written, and `recompute` beside.
fn budget_with_recompute(plan: &Plan) -> String {
    let Budget { train, infer, reserve, units, .. } = plan.graph.budget;
    let amount = |name: &str, bytes: u64| format!("{name}{}, ", units.format_declared(bytes));
    let amounts = match (train, infer) {
        (Some(train), Some(infer)) if train == infer => amount("", train),
        (train, infer) => {
            let train = train.map(|bytes| amount("train = ", bytes));
            train.unwrap_or_default() + &infer.map(|bytes| amount("infer = ", bytes)).unwrap_or_default()
        }
    };
    let reserve = if reserve > 0 { amount("reserve = ", reserve) } else { String::new() };
    format!("#[budget({amounts}{reserve}recompute)]")
}

/// A smaller batch for evaluation, where that is too large whatever the batch of training.
fn evaluation_remedy(plan: &Plan, limit: u64) -> Option<Remedy> {
    let training = plan.training.as_ref()?;
    if plan.graph.inference_batch.is_none() && training.placement.length > limit {
        return None;
    }
    let room = limit.checked_sub(plan.evaluation_shift())?;
    if plan.inference_bytes() <= room {
        return None;
    }
    let alone = inference_alone(plan);
    // What inference may use alone limits its batch as well.
    let most = match plan.graph.budget.infer {
        Some(infer) => largest_batch(&alone, arena_budget(infer, plan.graph.budget.reserve)).max(1),
        None => MAX_BATCH,
    };
    if training.placement.length <= limit
        && let batch @ 1.. = largest_batch(&alone, room).min(most)
    {
        return Remedy::new(format!("#[infer(batch = {batch})]"), plan.graph.clone().infer_batch(batch), limit);
    }
    // Neither part fits: one batch for both.
    let same = Graph { inference_batch: None, ..plan.graph.clone() }.plan().ok()?;
    match largest_batch(&same, limit) {
        0 => None,
        batch => {
            let infer = batch.min(most);
            let changed = plan.graph.clone().batch(batch).infer_batch(infer);
            Remedy::new(format!("batch = {batch}, #[infer(batch = {infer})]"), changed, limit)
        }
    }
}

/// The network without its training, if what is declared for that suffices for inference.
fn inference_remedy(plan: &Plan, limit: u64) -> Option<Remedy> {
    let budget = &plan.graph.budget;
    let mut change = format!("inference only, #[infer(batch = {})] for #[train(..)]", plan.graph.inference_batch());
    let limit = match (budget.infer, budget.train) {
        (Some(infer), _) => arena_budget(infer, budget.reserve),
        (None, train) => {
            let amount = budget.units.format_declared(train.unwrap_or(0));
            change += &format!(" and infer = {amount} for train = {amount}");
            limit
        }
    };
    Remedy::new(change, plan.graph.clone().inference_only(), limit)
}
