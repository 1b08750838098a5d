//! What the examples that train share: arguments, Ctrl-C, a progress bar, and the bytes side by side.
#![allow(dead_code)] // Each example takes what it needs.

pub mod samples;

use std::collections::VecDeque;
use std::error::Error;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use plimsoll::data::{Dataset, Loader};
use plimsoll::device::{self, AnyDevice, MemoryReport};
use plimsoll::{Cpu, Device, Element, Network, Trainer};

/// What an example returns.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Runs an example. An error is shown in its own words.
pub fn run(example: fn(Arguments) -> Result) -> ExitCode {
    match example(Arguments::new()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The arguments of an example.
pub struct Arguments {
    given: VecDeque<String>,
    /// The flags and options that it knows, for the message when there is another.
    known: Vec<&'static str>,
}

impl Arguments {
    /// Those of the process.
    fn new() -> Arguments {
        Arguments { given: std::env::args().skip(1).collect(), known: Vec::new() }
    }

    /// Whether `--name` was given.
    pub fn flag(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        let place = self.given.iter().position(|argument| argument == name);
        place.map(|place| self.given.remove(place)).is_some()
    }

    /// What follows `--name`.
    pub fn option<T: FromStr>(&mut self, name: &'static str) -> Result<Option<T>> {
        self.known.push(name);
        let Some(place) = self.given.iter().position(|argument| argument == name) else { return Ok(None) };
        self.given.remove(place);
        let Some(value) = self.given.remove(place) else {
            return Err(format!("{name} needs a value after it").into());
        };
        match value.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(format!("{name} can't be `{value}`").into()),
        }
    }

    /// The file or folder that follows `--name`.
    pub fn path(&mut self, name: &'static str) -> Result<Option<PathBuf>> {
        self.option(name)
    }

    /// The device that `--device cpu` or `--device cuda` names; without it, the best there is.
    pub fn device(&mut self) -> Result<AnyDevice> {
        match self.option::<String>("--device")?.as_deref() {
            None => Ok(device::best()?),
            Some("cpu") => Ok(Cpu::new().into()),
            Some("cuda") => cuda(),
            Some(other) => Err(format!("--device can't be `{other}`: it is `cpu` or `cuda`").into()),
        }
    }

    /// Complains of what is left.
    pub fn finish(self) -> Result {
        match self.given.front() {
            Some(other) => Err(format!("unknown argument `{other}`: there are {}", self.known.join(", ")).into()),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "cuda")]
fn cuda() -> Result<AnyDevice> {
    Ok(plimsoll::Cuda::new(0)?.into())
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Result<AnyDevice> {
    Err("this was built without CUDA\nhelp: cargo run --release --features cuda --example ...".into())
}

/// Whether Ctrl-C was pressed.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on, Ctrl-C is noted; pressed twice, it ends the process at once.
    pub fn new() -> Result<Interrupt> {
        let pressed = Arc::new(AtomicBool::new(false));
        let handler = pressed.clone();
        ctrlc::set_handler(move || {
            if handler.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })?;
        Ok(Interrupt(pressed))
    }

    /// Whether it was.
    pub fn is_pressed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far the training has come: a bar on a terminal; otherwise a line now and then.
pub struct Progress {
    bar: Option<ProgressBar>,
    length: u64,
    position: u64,
    lines: u64,
}

impl Progress {
    /// For so many steps. Where there is no terminal, about `lines` lines are printed.
    pub fn new(length: u64, lines: u64) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(length);
            // The template is right or wrong for good; a wrong one would show indicatif's own bar.
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        Progress { bar, length, position: 0, lines }
    }

    /// One step is done.
    pub fn step(&mut self, message: impl FnOnce() -> String) {
        self.position += 1;
        let line = self.position * self.lines / self.length > (self.position - 1) * self.lines / self.length;
        match &self.bar {
            Some(bar) => {
                bar.set_message(message());
                bar.inc(1);
            }
            None if line => println!("step {:>5} of {}  {}", self.position, self.length, message()),
            None => {}
        }
    }

    /// The training is over.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The two numbers that must be one, and what a card's driver says of them.
pub fn side_by_side(planned: u64, report: MemoryReport) -> Result {
    println!("{report}");
    if planned == report.allocated { Ok(()) } else { Err("the trainer did not allocate what was planned".into()) }
}

/// Trains for some epochs, evaluates, saves if asked to, and shows the bytes. Ctrl-C ends the training early and cleanly.
/// Gives the accuracy on the test data.
pub fn fit<N, S, D>(
    trainer: &mut Trainer<N, D>,
    train: &mut Loader<S>,
    test: &mut Loader<S>,
    epochs: u64,
    save: Option<&Path>,
) -> Result<Fit>
where
    N: Network,
    D: Device,
    S: Dataset<Element: Element, Target = i32>,
{
    println!("Training on {}.\n", trainer.device_mut().name());
    let steps = epochs * train.len() as u64;
    let interrupt = Interrupt::new()?;
    let (start, mut progress) = (Instant::now(), Progress::new(steps, 8));
    'training: for epoch in 1..=epochs {
        for batch in train.epoch() {
            if interrupt.is_pressed() {
                break 'training;
            }
            let batch = batch?;
            let loss = trainer.step(batch.inputs(), batch.targets())?;
            progress.step(|| format!("epoch {epoch:>2}  loss {loss:.3}"));
        }
    }
    progress.finish();
    let seconds = start.elapsed().as_secs_f64();
    let metrics = trainer.evaluate_loader(test)?;
    let accuracy = metrics.accuracy();
    println!(
        "\n{} of {steps} steps in {seconds:.1} s: {:.2} % of {} test samples are right",
        trainer.batches(),
        100.0 * accuracy,
        metrics.samples(),
    );
    side_by_side(N::PEAK_BYTES, trainer.memory_report())?;
    if let Some(file) = save {
        trainer.save(file)?;
        println!("saved to {}", file.display());
    }
    Ok(Fit { accuracy, is_complete: !interrupt.is_pressed() })
}

/// How a training went.
pub struct Fit {
    /// The share of the test samples that are right.
    pub accuracy: f64,
    /// Whether it ran to its end.
    pub is_complete: bool,
}

impl Fit {
    /// Fails where a whole run has learnt less than it should.
    pub fn require(&self, least: f64) -> Result {
        let [is, should] = [self.accuracy, least].map(|share| 100.0 * share);
        match self.is_complete && self.accuracy <= least {
            true => Err(format!("only {is:.2} % are right, where more than {should} % should be").into()),
            false => Ok(()),
        }
    }
}
