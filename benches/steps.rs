//! How long one training step takes on two threads, beside PyTorch and JAX; or on a card of NVIDIA's, beside PyTorch.
//!
//! ```text
//! PYTHON=/tmp/venv/bin/python cargo bench --bench steps -- mlp lenet resnet18 resnet50 vgg16
//! cargo bench --features cuda --bench steps -- --cuda
//! ```
//!
//! Without names, all networks. Ours is timed before and after the peers, and both halves count, so that what else the machine
//! does hits both. PyTorch is timed by `scripts/torch_steps.py`, run by `PYTHON` or else `python3`, in its fast modes; where
//! that has no torch, ours stands alone. Where it has JAX, the MLP is timed by `scripts/jax_steps.py` too. The fastest counts.

#[path = "../tests/networks/mod.rs"]
mod networks;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use networks::resnet50::ResNet50;
use networks::vgg16::Vgg16;
use networks::{LeNet, Mlp, ResNet18};
use plimsoll::data::Random;
use plimsoll::device::AnyDevice;
use plimsoll::plan::graph::Graph;
use plimsoll::{Cpu, Device, Network, Slice, Trainer};

const THREADS: usize = 2;
/// At least so many steps are timed on each side of PyTorch, and at least so long.
const STEPS: usize = 5;
const LEAST: Duration = Duration::from_secs(1);

/// Name, batch, network, and the ratio to PyTorch's time that is aimed at.
fn networks() -> [(&'static str, u64, Graph, f64); 6] {
    [
        ("mlp", 4, Mlp::graph(), 1.0),
        ("mlp", 64, Mlp::graph(), 1.0),
        ("lenet", 64, LeNet::graph(), 0.9),
        ("resnet18", 64, ResNet18::graph(), 1.0),
        ("resnet50", 4, ResNet50::graph(), 1.0),
        ("vgg16", 4, Vgg16::graph(), 0.9),
    ]
}

/// A median and a minimum, in milliseconds.
struct Times {
    median: f64,
    least: f64,
}

fn main() {
    // Cargo passes flags of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let cuda = std::env::args().any(|argument| argument == "--cuda");
    let networks = networks();
    if let Some(unknown) = wanted.iter().find(|wanted| networks.iter().all(|(name, ..)| name != wanted)) {
        eprintln!("there is no `{unknown}`: there are mlp, lenet, resnet18, resnet50 and vgg16");
        std::process::exit(1);
    }
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let peers = Peers::new(python.clone());
    match &peers {
        Some(peers) => {
            let with = if cuda { device(cuda).name() } else { format!("{THREADS} threads each") };
            let jax = if peers.jax { ", JAX" } else { "" };
            println!("PyTorch {}{jax}, {with}; milliseconds a step\n", peers.torch);
        }
        None => println!("`{python}` has no torch and torchvision: no comparison; milliseconds a step\n"),
    }
    println!(
        "| network | batch | ours, median | least | peer, median | least | its mode | ratio of medians | of least | target |"
    );
    println!("|---|---:|---:|---:|---:|---:|---|---:|---:|---:|");
    for (name, batch, graph, target) in networks {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        row(name, batch, graph, target, cuda, peers.as_ref());
    }
}

/// The first card, or the CPU.
fn device(cuda: bool) -> AnyDevice {
    #[cfg(feature = "cuda")]
    if cuda {
        return plimsoll::Cuda::new(0).unwrap_or_else(|error| panic!("{error}")).into();
    }
    assert!(!cuda, "build with `--features cuda`");
    Cpu::with_threads(THREADS).expect("threads").into()
}

fn row(name: &str, batch: u64, graph: Graph, target: f64, cuda: bool, peers: Option<&Peers>) {
    let mut step = training(graph, batch, device(cuda));
    // The first steps touch the arena's memory and start the threads.
    step();
    step();
    let mut times = Vec::new();
    time(&mut step, &mut times);
    let peer = peers.map(|peers| peer_steps(peers, name, batch, cuda));
    step();
    time(&mut step, &mut times);
    let ours = summary(times);
    print!("| {name} | {batch} | {} | {} ", number(ours.median), number(ours.least));
    match peer {
        Some((mode, peer)) => println!(
            "| {} | {} | {mode} | {:.2} | {:.2} | {target:.1} |",
            number(peer.median),
            number(peer.least),
            ours.median / peer.median,
            ours.least / peer.least
        ),
        None => println!("| | | | | | |"),
    }
}

/// Makes one step on random data, which stays the same.
fn training(graph: Graph, batch: u64, device: AnyDevice) -> impl FnMut() {
    let plan = graph.batch(batch).plan().expect("a plan");
    let mut random = Random::new(1);
    let elements = batch * plan.graph.inputs[0].value_type.elements();
    let image: Vec<f32> = (0..elements).map(|_| random.below(2001) as f32 / 1000.0 - 1.0).collect();
    // There are at least ten classes.
    let labels: Vec<i32> = (0..batch).map(|_| random.below(10) as i32).collect();
    let mut trainer = Trainer::from_plan(&plan, device, 42).expect("a trainer");
    move || {
        trainer.step(&[Slice::from(&image)][..], &labels).expect("a step");
    }
}

fn time(step: &mut impl FnMut(), times: &mut Vec<f64>) {
    let (begin, before) = (Instant::now(), times.len());
    while times.len() - before < STEPS || begin.elapsed() < LEAST {
        let start = Instant::now();
        step();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
}

fn summary(mut times: Vec<f64>) -> Times {
    times.sort_unstable_by(f64::total_cmp);
    Times { median: times[times.len() / 2], least: times[0] }
}

/// Of any size, with three digits or more.
fn number(milliseconds: f64) -> String {
    let decimals = if milliseconds < 10.0 { 3 } else { 1 };
    format!("{milliseconds:.decimals$}")
}

/// What a Python has to compare with.
struct Peers {
    python: String,
    torch: String,
    jax: bool,
}

impl Peers {
    /// None without torch and torchvision.
    fn new(python: String) -> Option<Peers> {
        let prints = |program: &str| {
            let output = Command::new(&python).args(["-c", program]).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
        };
        let torch = prints("import torch, torchvision; print(torch.__version__)")?;
        let jax = prints("import jax").is_some();
        Some(Peers { python, torch, jax })
    }
}

/// The fastest peer and mode, by the median: PyTorch in all modes, and JAX where a network has a script for it.
fn peer_steps(peers: &Peers, name: &str, batch: u64, cuda: bool) -> (String, Times) {
    let (batch, threads) = (batch.to_string(), THREADS.to_string());
    let device = if cuda { "cuda" } else { "cpu" };
    let mut lines = run(&peers.python, "torch_steps.py", &[name, &batch, &threads, device]);
    if peers.jax && name == "mlp" && !cuda {
        lines += &run(&peers.python, "jax_steps.py", &[&batch, &threads]);
    }
    let modes = lines.lines().map(|line| {
        let mut fields = line.split('\t');
        let mode = fields.next().expect("a mode").to_string();
        let mut number = || fields.next().and_then(|field| field.parse().ok()).expect("milliseconds");
        (mode, Times { median: number(), least: number() })
    });
    modes.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median)).expect("a mode")
}

/// What a script prints.
fn run(python: &str, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(python)
        .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts").join(script))
        .args(arguments)
        .env("OMP_NUM_THREADS", THREADS.to_string())
        // Threads that wait without sleeping start sooner; nothing else wants the cores meanwhile.
        .env("OMP_WAIT_POLICY", "active")
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
