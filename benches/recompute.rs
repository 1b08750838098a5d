//! How long a training step takes in ever less memory, beside what the planner says.
//!
//! ```text
//! cargo bench --bench recompute -- vgg16 resnet50 densenet121 mobilenet_v2 unet
//! ```
//!
//! Without names, all networks. The plans of a network take turns, a step each, so that what else the machine does hits all of
//! them. Every one must have the losses of the first, bit by bit.

use std::time::Instant;

use plimsoll::data::Random;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::plan::Plan;
use plimsoll::plan::shape::DType;
use plimsoll::plan::strategy::Saving;
use plimsoll::{Cpu, Network, Slice, Trainer};

macro_rules! networks {
    ($($file:literal $module:ident $network:ident $batch:literal;)*) => {
        $(#[path = $file] #[allow(dead_code)] mod $module;)*

        /// Name, and the network with a batch that a CPU bears.
        fn networks() -> Vec<(&'static str, Graph)> {
            vec![$((stringify!($module), <$module::$network as Network>::graph().batch($batch)),)*]
        }
    };
}

networks! {
    "../examples/zoo/vgg16.rs" vgg16 Vgg16 2;
    "../examples/zoo/resnet50.rs" resnet50 ResNet50 4;
    "../examples/zoo/densenet121.rs" densenet121 DenseNet121 4;
    "../examples/zoo/mobilenet_v2.rs" mobilenet_v2 MobileNetV2 4;
    "../examples/zoo/unet.rs" unet UNet 2;
}

const THREADS: usize = 2;
/// Steps that are timed for each plan, after one that is not.
const STEPS: usize = 5;
/// Parts of the transient memory that the step takes when nothing is saved, in percent.
const SHARES: [u64; 5] = [100, 75, 50, 35, 25];

/// A plan in training.
struct Run {
    memory: String,
    megabytes: f64,
    compute: f64,
    step: Box<dyn FnMut() -> f32>,
    milliseconds: Vec<f64>,
    losses: Vec<f32>,
}

fn main() {
    // Cargo passes flags of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let networks = networks();
    if let Some(unknown) = wanted.iter().find(|wanted| networks.iter().all(|(name, _)| name != wanted)) {
        let names: Vec<&str> = networks.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no `{unknown}`: there are {}", names.join(", "));
        std::process::exit(1);
    }
    println!("{THREADS} threads, median and least of {STEPS} steps\n");
    println!(
        "| network | batch | memory | peak, MB | extra compute, planned | ms, median | least | extra time | of least |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (name, graph) in networks {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            rows(name, &graph);
        }
    }
}

fn rows(name: &str, graph: &Graph) {
    let mut runs = runs(graph);
    for _ in 0..=STEPS {
        for run in &mut runs {
            let start = Instant::now();
            run.losses.push((run.step)());
            run.milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let batch = graph.declared_batch();
    let summaries: Vec<[f64; 2]> = runs.iter().map(|run| summary(&run.milliseconds[1..])).collect();
    for (run, times) in runs.iter().zip(&summaries) {
        let bits = |run: &Run| run.losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(run), bits(&runs[0]), "{name}, {}: {:?} and {:?}", run.memory, run.losses, runs[0].losses);
        let Run { memory, megabytes, compute, .. } = run;
        let planned = 100.0 * (compute - 1.0);
        let [median, least] = times;
        let [extra, extra_least] = [0, 1].map(|i| 100.0 * (times[i] / summaries[0][i] - 1.0));
        println!(
            "| {name} | {batch} | {memory} | {megabytes:.1} | {planned:.1}% | {median:.0} | {least:.0} | {extra:.1}% | {extra_least:.1}% |"
        );
    }
    let losses: Vec<String> = runs[0].losses.iter().map(|loss| format!("{loss:.6}")).collect();
    eprintln!("{name}: every plan has the losses {}", losses.join(", "));
}

/// A run that keeps everything, and one for each share of the memory: those that do not fit have the least that is reached.
fn runs(graph: &Graph) -> Vec<Run> {
    let plain = graph.clone().without(Saving::BEYOND_IN_PLACE).plan().expect("a plan");
    let plain = &plain.training.as_ref().expect("training").placement;
    // What is computed is compared with a run that sums gradients in the same order.
    let kept = graph.clone().without(&[Saving::CheapRecomputation]).plan().expect("a plan");
    let mut runs = vec![run("all kept".to_string(), &kept)];
    for share in SHARES {
        let budget = plain.persistent_bytes + plain.transient_bytes() * share / 100;
        let plan = graph.clone().budget(budget).recompute().plan().expect("a plan");
        let placement = &plan.training.as_ref().expect("training").placement;
        if placement.length <= budget {
            runs.push(run(format!("{share}%"), &plan));
        } else {
            let reached = 100.0 * placement.transient_bytes() as f64 / plain.transient_bytes() as f64;
            runs.push(run(format!("{reached:.1}%, the least"), &plan));
            break;
        }
    }
    runs
}

/// Makes steps on random data, which stay the same.
fn run(memory: String, plan: &Plan) -> Run {
    let graph = &plan.graph;
    let batch = graph.declared_batch();
    let mut random = Random::new(1);
    let elements = batch * graph.inputs[0].value_type.elements();
    let image: Vec<f32> = (0..elements).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    let target = graph.target_type().expect("a target");
    let elements = batch * target.elements();
    // There are at least ten classes.
    let classes: Vec<i32> = (0..elements).map(|_| random.below(10) as i32).collect();
    let values: Vec<f32> = classes.iter().map(|class| (class % 2) as f32).collect();
    let cpu = Cpu::with_threads(THREADS).expect("threads");
    let mut trainer = Trainer::from_plan(plan, cpu, 42).expect("a trainer");
    let step = move || {
        let targets = if target.dtype == DType::I32 { Slice::from(&classes) } else { Slice::from(&values) };
        trainer.step(&[Slice::from(&image)][..], targets).expect("a step")
    };
    let planned = plan.training.as_ref().expect("training");
    Run {
        memory,
        megabytes: planned.placement.length as f64 / 1e6,
        compute: planned.compute(graph),
        step: Box::new(step),
        milliseconds: Vec::new(),
        losses: Vec::new(),
    }
}

/// The median and the minimum.
fn summary(times: &[f64]) -> [f64; 2] {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    [times[times.len() / 2], times[0]]
}
