//! ResNet-18: what it costs, and some steps of training on a batch of pictures, which it soon knows by heart.
//!
//! ```text
//! cargo run --release --example resnet18
//! cargo run --release --example resnet18 -- --weights resnet18.safetensors --save mine.safetensors
//! cargo run --release --example resnet18 -- --quick
//! ```
//!
//! `--weights` takes the weights that torchvision publishes, once they are a safetensors file:
//! `save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), "resnet18.safetensors")`.
//! `--device cpu` or `--device cuda` says where it trains.

#[path = "zoo/resnet18.rs"]
#[allow(dead_code)]
mod network;
mod support;

use std::process::ExitCode;

use network::ResNet18;
use plimsoll::{Network, Trainer};
use support::samples::synthetic;
use support::{Arguments, Interrupt, Progress, Result, side_by_side};

fn main() -> ExitCode {
    support::run(resnet18)
}

fn resnet18(mut arguments: Arguments) -> Result {
    let quick = arguments.flag("--quick");
    let (weights, save) = (arguments.path("--weights")?, arguments.path("--save")?);
    let batch = arguments.option("--batch")?.unwrap_or(if quick { 2 } else { 8 });
    let steps = arguments.option("--steps")?.unwrap_or(if quick { 2 } else { 10 });
    let device = arguments.device()?;
    arguments.finish()?;

    let plan = ResNet18::graph().batch(batch).plan()?;
    println!("{}", plan.summary());
    let mut trainer = Trainer::from_plan(&plan, device, 42)?;
    if let Some(file) = weights {
        trainer.load_weights(&file)?;
        println!("began with {}", file.display());
    }
    trainer.set_learning_rate(0.01)?;

    println!("These pictures are made up.\n");
    let images = synthetic([3, 224, 224], 10, batch as usize, 1)?.train;
    let inputs: Vec<f32> = images.pixels().iter().map(|pixel| f32::from(*pixel) / 255.0).collect();
    let (interrupt, mut progress) = (Interrupt::new()?, Progress::new(steps, steps));
    for _ in 0..steps {
        if interrupt.is_pressed() {
            break;
        }
        let loss = trainer.step(&inputs, images.labels())?;
        progress.step(|| format!("loss {loss:.3}"));
    }
    progress.finish();
    side_by_side(plan.peak_bytes(), trainer.memory_report())?;
    if let Some(file) = save {
        trainer.save_weights(&file)?;
        println!("saved to {}", file.display());
    }
    Ok(())
}
