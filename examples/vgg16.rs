//! The whole account of VGG-16: layer by layer as a lecture's notes have it, by the usual formula, as planned; and one real
//! step of training in exactly the planned bytes.
//!
//! ```text
//! cargo run --release --example vgg16                 # a step with 4 images
//! cargo run --release --example vgg16 -- --batch 16
//! cargo run --release --example vgg16 -- --quick      # a step with one image
//! ```
//!
//! `--device cpu` or `--device cuda` says where the step is made.
//!
//! The notes are those of Stanford's course CS231n on convolutional networks. They leave biases out of the weights, and
//! say that the table's values add up to 24 million; they add up to 15.2 million.

#[path = "zoo/vgg16.rs"]
#[allow(dead_code)]
mod network;
mod support;

use std::process::ExitCode;
use std::time::Instant;

use network::Vgg16;
use plimsoll::device::AnyDevice;
use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::units::{Units, thousands};
use plimsoll::{LayerRow, Network, Plan, Trainer};
use support::samples::synthetic;
use support::{Arguments, Result, side_by_side};

fn main() -> ExitCode {
    support::run(vgg16)
}

fn vgg16(mut arguments: Arguments) -> Result {
    let quick = arguments.flag("--quick");
    let batch = arguments.option("--batch")?.unwrap_or(if quick { 1 } else { 4 });
    let device = arguments.device()?;
    arguments.finish()?;

    table();
    let plan = Vgg16::graph().batch(batch).plan()?;
    formula(&plan);
    one_step(&plan, batch as usize, device)
}

/// A row for each layer that the notes have: values of one image, and weights without biases.
fn table() {
    println!("VGG-16, one image\n");
    let (mut values, mut weights) = (0, 0);
    for row in Vgg16::LAYERS {
        let size: u64 = row.shape.iter().product();
        let name = match (row.kind, row.shape.last()) {
            ("input", _) => "INPUT".to_string(),
            ("conv2d", _) => format!("CONV3-{}", row.shape[0]),
            ("maxpool2d", _) => "POOL2".to_string(),
            ("linear", _) => "FC".to_string(),
            _ => continue,
        };
        let own = row.parameters - biases(row);
        (values, weights) = (values + size, weights + own);
        let [own, size] = [own, size].map(thousands);
        println!("{name:<10} {:<16} memory: {size:>10}   weights: {own:>12}", format!("{:?}", &row.shape[..]));
    }
    println!(
        "\nmemory:  {} values x 4 bytes = {} for the forward pass of an image",
        thousands(values),
        Units::Decimal.format(4 * values)
    );
    println!("weights: {}, and with biases {}", thousands(weights), thousands(Vgg16::PARAMETERS));
}

/// Each output channel has one.
fn biases(row: &LayerRow) -> u64 {
    if row.parameters == 0 { 0 } else { row.shape[0] }
}

/// What one would work out by hand for training, and what is planned.
fn formula(plan: &Plan) {
    let footprint = Footprint::new(plan);
    println!("\nTraining at batch {}, SGD with momentum\n", footprint.batch);
    for (what, bytes) in [
        ("parameters", footprint.parameter_bytes),
        ("+ gradients", footprint.gradient_bytes),
        ("+ optimizer state", footprint.optimizer_bytes),
        ("+ input and targets", footprint.input_bytes),
        ("+ 2 x activations", 2 * footprint.activation_bytes),
        ("= by hand", footprint.textbook_bytes),
        ("lower bound", footprint.lower_bound_bytes),
        ("planned", footprint.peak_bytes),
    ] {
        println!("{what:<20} {:>14} bytes", thousands(bytes));
    }
}

fn one_step(plan: &Plan, batch: usize, device: AnyDevice) -> Result {
    let mut trainer = Trainer::from_plan(plan, device, 42)?;
    let images = synthetic([3, 224, 224], 10, batch, 1)?.train;
    let inputs: Vec<f32> = images.pixels().iter().map(|pixel| f32::from(*pixel) / 255.0).collect();
    let start = Instant::now();
    let loss = trainer.step(&inputs, images.labels())?;
    println!("\none step of training in {:.1} s: loss {loss:.3}", start.elapsed().as_secs_f64());
    side_by_side(plan.peak_bytes(), trainer.memory_report())
}
