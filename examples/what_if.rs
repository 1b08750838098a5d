//! Asks "what if" of a network: other batches, other optimizers, other budgets. Every figure is planned, none estimated.
//!
//! ```text
//! cargo run --example what_if              # ResNet-50
//! cargo run --example what_if -- vgg16
//! cargo run --example what_if -- unet
//! ```

use std::{env, process};

use plimsoll::Network;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::optimizers::Optimizer;
use plimsoll::plan::units::Units;
use plimsoll::plan::what_if::largest_batch;

#[path = "zoo/resnet50.rs"]
#[allow(dead_code)]
mod resnet50;
#[path = "zoo/unet.rs"]
#[allow(dead_code)]
mod unet;
#[path = "zoo/vgg16.rs"]
#[allow(dead_code)]
mod vgg16;

const BATCHES: [u64; 7] = [1, 4, 16, 32, 64, 128, 256];
/// In GB.
const BUDGETS: [u64; 6] = [4, 8, 12, 16, 24, 80];

fn main() {
    let name = env::args().nth(1).unwrap_or_else(|| "resnet50".to_string());
    let graph = match name.as_str() {
        "resnet50" => resnet50::ResNet50::graph(),
        "unet" => unet::UNet::graph(),
        "vgg16" => vgg16::Vgg16::graph(),
        _ => {
            eprintln!("no network `{name}` here: try resnet50, unet or vgg16");
            process::exit(2);
        }
    };
    let momentum = Optimizer::Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let optimizers = [
        ("sgd", Optimizer::by_name("sgd").expect("a known optimizer")),
        ("sgd, momentum", momentum),
        ("adam", Optimizer::by_name("adam").expect("a known optimizer")),
    ];

    println!("{}: what training needs\n", graph.name);
    head("batch", &optimizers);
    for batch in BATCHES {
        row(&batch.to_string(), &optimizers, |optimizer| {
            peak(graph.clone().batch(batch).optimizer(optimizer))
                .map_or("too much".into(), |b| Units::Decimal.format(b))
        });
    }

    println!("\n{}: the largest batch within a budget\n", graph.name);
    head("budget", &optimizers);
    for gigabytes in BUDGETS {
        row(&format!("{gigabytes} GB"), &optimizers, |optimizer| {
            let plan = graph.clone().optimizer(optimizer).plan().expect("the declared batch can be planned");
            largest_batch(&plan, gigabytes * 1_000_000_000).to_string()
        });
    }

    let inference = graph.clone().inference_only();
    let batch = inference.declared_batch();
    let needs = peak(inference).expect("inference needs less than training");
    println!("\nInference alone, at batch {batch}: {}", Units::Decimal.format(needs));
    let accumulated = graph.clone().accumulate(4);
    if let Some(bytes) = peak(accumulated) {
        println!(
            "Training at batch {batch} with the gradients of 4 batches averaged: {}",
            Units::Decimal.format(bytes)
        );
    }
}

/// What training allocates, or `None` where that passes 64 bits.
fn peak(graph: Graph) -> Option<u64> {
    graph.plan().ok().map(|plan| plan.peak_bytes())
}

fn head(first: &str, optimizers: &[(&str, Optimizer)]) {
    let names = optimizers.iter().map(|(name, _)| format!("{name:>16}"));
    println!("{first:>8}{}", names.collect::<String>());
}

fn row(first: &str, optimizers: &[(&str, Optimizer)], cell: impl Fn(Optimizer) -> String) {
    let cells = optimizers.iter().map(|(_, optimizer)| format!("{:>16}", cell(optimizer.clone())));
    println!("{first:>8}{}", cells.collect::<String>());
}
