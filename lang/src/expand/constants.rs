//! The constants of a network, its table of layers, its plan, and the sums that rustc checks once more.

use std::fmt::Write;

use plimsoll_plan::footprint::{Footprint, Peak};
use plimsoll_plan::layer_table::LayerRow;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::what_if::arena_budget;

use super::{exported, write_user_constants};
use crate::Const;

/// Every name that [`write`] gives to an associated item.
pub(crate) const NAMES: &[&str] = &[
    "BATCH",
    "PARAMETERS",
    "PARAMETER_BYTES",
    "GRADIENT_BYTES",
    "OPTIMIZER_BYTES",
    "BUFFER_BYTES",
    "INPUT_BYTES",
    "ACTIVATION_BYTES",
    "SAVED_BYTES",
    "WORKSPACE_BYTES",
    "TEXTBOOK_BYTES",
    "PEAK_BYTES",
    "LOWER_BOUND_BYTES",
    "INFERENCE_BYTES",
    "BUDGET_BYTES",
    "HEADROOM_BYTES",
    "MAX_BATCH",
    "FLOPS",
    "RECOMPUTE_FLOPS",
    "LAYERS",
    "PEAK_CLASSES",
    "NAME",
    "PLAN",
];

/// Name, type, documentation and value of each constant that is a number.
type Constant = (&'static str, &'static str, &'static str, u64);

fn numbers(plan: &Plan, f: &Footprint) -> Vec<Constant> {
    let mut numbers = vec![
        ("BATCH", "usize", "The declared batch.", f.batch),
        ("PARAMETERS", "u64", "Trainable scalars.", f.parameters),
        ("PARAMETER_BYTES", "u64", "Bytes of all weights, trained or frozen.", f.parameter_bytes),
        (
            "GRADIENT_BYTES",
            "u64",
            "Bytes of the gradients of all trained weights; they need not all exist at once.",
            f.gradient_bytes,
        ),
        ("OPTIMIZER_BYTES", "u64", "Bytes of the optimizer's state.", f.optimizer_bytes),
        ("BUFFER_BYTES", "u64", "Bytes of untrained state, such as running statistics.", f.buffer_bytes),
        ("INPUT_BYTES", "u64", "Bytes of a batch of inputs and targets.", f.input_bytes),
        (
            "ACTIVATION_BYTES",
            "u64",
            "Bytes of the outputs of all layers for one batch, as layer tables count them: activation functions, dropout and views make nothing new, and the input is not among them.",
            f.activation_bytes,
        ),
        ("SAVED_BYTES", "u64", "Bytes that this plan keeps from forward to backward.", f.saved_bytes),
        ("WORKSPACE_BYTES", "u64", "Bytes of the largest workspace of any step.", f.workspace_bytes),
        (
            "TEXTBOOK_BYTES",
            "u64",
            "The hand formula: parameters + gradients + optimizer + input + 2 x activations, in bytes.",
            f.textbook_bytes,
        ),
        (
            "PEAK_BYTES",
            "u64",
            "What training allocates, exactly, in bytes; for a network that is not trained, what inference does.",
            f.peak_bytes,
        ),
        (
            "LOWER_BOUND_BYTES",
            "u64",
            "The most bytes live at one step; `PEAK_BYTES` can't be below it.",
            f.lower_bound_bytes,
        ),
        ("INFERENCE_BYTES", "u64", "What inference alone allocates, exactly, in bytes.", f.inference_bytes),
        (
            "FLOPS",
            "u64",
            "Multiply-adds x 2 of one step at the declared batch: products of matrices and convolutions.",
            f.flops,
        ),
        ("RECOMPUTE_FLOPS", "u64", "The part of `FLOPS` that recomputation adds.", f.recompute_flops),
    ];
    if let Some(budget) = f.budget_bytes {
        let headroom = arena_budget(budget, plan.graph.budget.reserve).saturating_sub(f.peak_bytes);
        numbers.push(("BUDGET_BYTES", "u64", "The declared budget in bytes.", budget));
        numbers.push((
            "HEADROOM_BYTES",
            "u64",
            "What is left of the budget, its reserve taken off, in bytes.",
            headroom,
        ));
        numbers.push(("MAX_BATCH", "usize", "The largest batch that fits the budget.", f.max_batch.unwrap_or(0)));
    }
    numbers
}

/// Writes the implementations of a planned network, each with the attributes `outer`.
pub(super) fn write(
    code: &mut String,
    name: &str,
    outer: &str,
    plan: &Plan,
    footprint: &Footprint,
    rows: &[LayerRow],
    consts: &[Const],
) {
    put(code, format_args!("{outer} impl {name} {{\n"));
    for (constant, kind, docs, value) in numbers(plan, footprint) {
        put(code, format_args!("#[doc = \"{docs}\"] pub const {constant}: ::core::primitive::{kind} = {value};\n"));
    }
    write_peak(code, plan);
    write_layers(code, rows);
    write_user_constants(code, consts);
    code.push_str(SUMMARY);
    code.push_str("}\n");
    write_network(code, name, outer, &plan.to_bytes(), footprint.budget_bytes);
    write_checks(code, name, outer, plan, footprint);
    write_uses(code, name, outer, numbers(plan, footprint).iter().map(|number| number.0), consts);
}

/// Writes formatted text. It can't fail on a string.
pub(super) fn put(code: &mut String, text: std::fmt::Arguments<'_>) {
    code.write_fmt(text).expect("strings take any text");
}

pub(super) const SUMMARY: &str = "#[doc = \"The table of layers, the totals, the peak and the budget, as text.\"] \
     #[must_use] pub fn summary() -> ::std::string::String { <Self as ::plimsoll::Network>::PLAN.summary() }\n";

fn write_peak(code: &mut String, plan: &Plan) {
    let peak = Peak::new(plan);
    code.push_str(
        "#[doc = \"What is live where the peak is: each class with its bytes. They add up to `PEAK_BYTES`.\"] \
         pub const PEAK_CLASSES: &'static [(&'static ::core::primitive::str, ::core::primitive::u64)] = &[",
    );
    for &(class, bytes) in &peak.classes {
        put(code, format_args!("(\"{}\", {bytes}), ", class.label()));
    }
    put(code, format_args!("(\"alignment and gaps\", {})];\n", peak.alignment_bytes + peak.idle_bytes));
}

fn write_layers(code: &mut String, rows: &[LayerRow]) {
    code.push_str(
        "#[doc = \"The inputs, then each layer: path, kind, output shape, parameters, bytes of each class.\"] \
         pub const LAYERS: &'static [::plimsoll::LayerRow] = { use ::plimsoll::LayerRow as Row; &[\n",
    );
    for row in rows {
        put(code, format_args!("Row::new({:?}, \"{}\", &[", row.path, row.kind));
        for extent in row.shape.iter() {
            put(code, format_args!("{extent}, "));
        }
        code.push_str("], [");
        for number in row.numbers() {
            put(code, format_args!("{number}, "));
        }
        code.push_str("]),\n");
    }
    code.push_str("] };\n");
}

/// The implementation of the trait, with the plan.
pub(super) fn write_network(code: &mut String, name: &str, outer: &str, plan: &[u8], budget: Option<u64>) {
    let budget = match budget {
        Some(budget) => format!("::core::option::Option::Some({budget})"),
        None => "::core::option::Option::None".to_string(),
    };
    put(
        code,
        format_args!(
            "{outer} impl ::plimsoll::Network for {name} {{\nconst NAME: &'static ::core::primitive::str = \"{name}\";\n"
        ),
    );
    put(code, format_args!("const BUDGET_BYTES: ::core::option::Option<::core::primitive::u64> = {budget};\n"));
    for (constant, kind) in [
        ("BATCH", "::core::primitive::usize"),
        ("PARAMETERS", "::core::primitive::u64"),
        ("PARAMETER_BYTES", "::core::primitive::u64"),
        ("GRADIENT_BYTES", "::core::primitive::u64"),
        ("OPTIMIZER_BYTES", "::core::primitive::u64"),
        ("BUFFER_BYTES", "::core::primitive::u64"),
        ("INPUT_BYTES", "::core::primitive::u64"),
        ("ACTIVATION_BYTES", "::core::primitive::u64"),
        ("SAVED_BYTES", "::core::primitive::u64"),
        ("WORKSPACE_BYTES", "::core::primitive::u64"),
        ("TEXTBOOK_BYTES", "::core::primitive::u64"),
        ("PEAK_BYTES", "::core::primitive::u64"),
        ("LOWER_BOUND_BYTES", "::core::primitive::u64"),
        ("INFERENCE_BYTES", "::core::primitive::u64"),
        ("FLOPS", "::core::primitive::u64"),
        ("LAYERS", "&'static [::plimsoll::LayerRow]"),
    ] {
        put(code, format_args!("const {constant}: {kind} = {name}::{constant};\n"));
    }
    code.push_str(
        "const PLAN: ::plimsoll::PlanRef = {\n\
         fn cell() -> &'static ::std::sync::OnceLock<::plimsoll::Plan> {\n\
         static CELL: ::std::sync::OnceLock<::plimsoll::Plan> = ::std::sync::OnceLock::new();\n&CELL\n}\n\
         ::plimsoll::PlanRef::new(",
    );
    put(code, format_args!("b\"{}\", cell)\n}};\n}}\n", plan.escape_ascii()));
}

/// Uses the type and all that it has: the user's lints about dead code see nothing to say, and no `allow` of ours meets
/// a `forbid` of theirs.
pub(super) fn write_uses<'a>(
    code: &mut String,
    name: &str,
    outer: &str,
    constants: impl Iterator<Item = &'a str>,
    consts: &[Const],
) {
    put(code, format_args!("{outer} const _: () = {{ let _ = {name}; let _ = {name}::summary;\n"));
    for constant in constants {
        put(code, format_args!("let _ = {name}::{constant};\n"));
    }
    for constant in exported(consts) {
        put(code, format_args!("let _ = {name}::{};\n", constant.name));
    }
    code.push_str("};\n");
}

/// The assertions by which rustc adds the parts up itself.
fn write_checks(code: &mut String, name: &str, outer: &str, plan: &Plan, footprint: &Footprint) {
    put(
        code,
        format_args!(
            "{outer} const _: () = ::plimsoll::check_sums({name}::LAYERS, {name}::PEAK_CLASSES, &::plimsoll::Totals {{ \
             parameters: {name}::PARAMETER_BYTES, buffers: {name}::BUFFER_BYTES, gradients: {name}::GRADIENT_BYTES, \
             optimizer: {name}::OPTIMIZER_BYTES, activations: {name}::ACTIVATION_BYTES, saved: {name}::SAVED_BYTES, \
             input: {name}::INPUT_BYTES, textbook: {name}::TEXTBOOK_BYTES, peak: {name}::PEAK_BYTES, \
             lower_bound: {name}::LOWER_BOUND_BYTES }});\n"
        ),
    );
    if footprint
        .budget_bytes
        .is_some_and(|budget| arena_budget(budget, plan.graph.budget.reserve) >= footprint.peak_bytes)
    {
        let reserve = plan.graph.budget.reserve;
        put(
            code,
            format_args!(
                "{outer} const _: () = ::core::assert!({name}::PEAK_BYTES + {name}::HEADROOM_BYTES + {reserve} == {name}::BUDGET_BYTES, \
                 \"the peak, the headroom and the reserve do not add up to the budget\");\n"
            ),
        );
    }
}
