//! Gradients of whole networks against finite differences of their loss, in single precision, with a tolerance that is derived
//! from what is measured: the noise of the loss, and the curvature along the way.
//!
//! Each layer by itself is checked elsewhere: `scripts/torch_references.py` compares PyTorch's gradients with differences in
//! double precision, and `references.rs` compares ours with those.

mod common;

use std::cell::Cell;

use common::{Batch, Recipe, network, recipes};
use plimsoll_plan::graph::{Graph, ParameterRole};
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_runtime::{Cpu, Error, Trainer};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, prop_assert_eq};
use proptest::test_runner::TestRunner;

/// The loss of the first step from given parameters, and the parameters after it.
fn step(graph: &Graph, parameters: &[Vec<f32>]) -> Result<(f64, Vec<Vec<f32>>), Error> {
    let plan = graph.plan().unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::with_threads(1).unwrap(), 5).unwrap();
    for (parameter, values) in graph.parameters.iter().zip(parameters) {
        trainer.load_parameter(&parameter.path, values).unwrap();
    }
    let batch = Batch::new(graph, graph.declared_batch(), 3);
    let loss = trainer.step(batch.slices().as_slice(), batch.targets(graph))?;
    let after = graph.parameters.iter().map(|p| trainer.parameter(&p.path).unwrap());
    Ok((f64::from(loss), after.collect()))
}

fn initial(graph: &Graph) -> Vec<Vec<f32>> {
    let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), Cpu::with_threads(1).unwrap(), 5).unwrap();
    graph.parameters.iter().map(|p| trainer.parameter(&p.path).unwrap()).collect()
}

/// The unit roundoff of a float.
const U: f64 = 1.0 / (1 << 24) as f64;

/// How far a gradient's norm may be off for the rounding of backward itself. A sum of n products errs by no more than `n U`
/// (Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1). These networks have up to 16 layers, whose
/// sums have up to 400 elements of up to 3 samples.
const BACKWARD: f64 = 16.0 * 1200.0 * U;

/// A slope is of use if its tolerance is this part of it at most.
const TELLS: f64 = 0.1;

/// The loss along a line: f(t), t in units of the distance.
struct Line<'l> {
    graph: &'l Graph,
    from: &'l [Vec<f32>],
    parameter: usize,
    direction: Vec<f64>,
}

impl Line<'_> {
    /// The loss at a distance, and how far along the direction the rounded parameters really are.
    fn at(&self, distance: f64) -> (f64, f64) {
        let mut moved = self.from.to_vec();
        let mut along = 0.0;
        for (x, direction) in moved[self.parameter].iter_mut().zip(&self.direction) {
            let start = f64::from(*x);
            *x = (start + distance * direction) as f32;
            along += (f64::from(*x) - start) * direction;
        }
        (step(self.graph, &moved).unwrap().0, along)
    }

    /// The standard deviation of the loss's rounding, from the fourth differences of losses so near to each other that nothing
    /// else is left in them (Moré and Wild 2011, "Estimating computational noise"): `(4!)^2 / 8! = 1 / 70` of their mean
    /// square. The loss is a float, so that it is not less than a float's spacing.
    fn noise(&self) -> f64 {
        let mut differences: Vec<f64> = (0..8).map(|i| self.at(f64::from(i) * 1e-5).0).collect();
        let least = 2.0 * U * differences[0].abs();
        for _ in 0..4 {
            differences = differences.windows(2).map(|pair| pair[1] - pair[0]).collect();
        }
        let mean = differences.iter().map(|x| x * x).sum::<f64>() / differences.len() as f64;
        (mean / 70.0).sqrt().max(least)
    }

    /// The slope, and how far it may be off.
    ///
    /// A central difference D(h) errs by `h^2 f''' / 6` and, in leading order, D(2h) by four times as much: Richardson's
    /// `R = D(h) + (D(h) - D(2h)) / 3` takes that out. What is left is less than what was taken out, as in Ridders' method
    /// (Press et al. 2007, "Numerical Recipes", section 5.7). R is a sum of four losses with weights of 4/6h twice and 1/12h
    /// twice, which makes of their noise `0.95 noise / h`; six standard deviations are allowed.
    fn slope(&self, h: f64, noise: f64) -> (f64, f64) {
        let difference = |h: f64| {
            let ((right, to), (left, from)) = (self.at(h), self.at(-h));
            (right - left) / (to - from)
        };
        let (near, far) = (difference(h), difference(2.0 * h));
        let correction = (near - far) / 3.0;
        (near + correction, correction.abs() + 6.0 * 0.95 * noise / h)
    }
}

/// The network of a recipe with a loss that has a gradient everywhere, and plain gradient descent with a learning rate of 1,
/// of which one step tells the gradient.
fn descending(recipe: Recipe) -> Graph {
    // Batch normalization may see one value per sample, and needs two.
    let mut graph = network(&Recipe { batch: recipe.batch.max(2), ..recipe });
    let training = graph.training.as_mut().unwrap();
    training.optimizer = Optimizer::Sgd { lr: 1.0, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    training.accumulate = 1;
    training.clip_grad_norm = None;
    if matches!(training.loss, Loss::L1 | Loss::SmoothL1 { .. }) {
        training.loss = Loss::Mse;
    }
    graph
}

/// How many gradients there were, of how many the differences told something, and how many were not what they told.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: u32,
    told: u32,
    missed: u32,
}

/// Along the gradient of each parameter, the loss changes as the gradient says, at one of several distances: over a short one
/// rounding is in the way, over a long one the curvature. A gradient that is wrong is so over every distance.
fn check(recipe: Recipe, counts: &mut Counts) -> Result<(), TestCaseError> {
    let smooth = recipe.smooth;
    let graph = descending(recipe);
    let before = initial(&graph);
    let after = match step(&graph, &before) {
        Ok((_, after)) => after,
        // A dilated window may lie on the padding alone, where a maximum is infinite.
        Err(Error::Loss { .. }) if !smooth => return Ok(()),
        Err(error) => panic!("{error}"),
    };
    for (i, parameter) in graph.parameters.iter().enumerate() {
        let gradient: Vec<f64> = before[i].iter().zip(&after[i]).map(|(b, a)| f64::from(*b) - f64::from(*a)).collect();
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        match parameter.role {
            ParameterRole::Trained => {}
            ParameterRole::Frozen => {
                prop_assert_eq!(norm, 0.0, "`{}` is frozen", parameter.path);
                continue;
            }
            ParameterRole::Buffer => continue,
        }
        // The gradient is the difference of two floats, each rounded.
        let rounded = before[i].iter().chain(&after[i]).map(|w| (U * f64::from(*w)).powi(2)).sum::<f64>().sqrt();
        if norm <= rounded {
            continue;
        }
        let direction = gradient.iter().map(|g| g / norm).collect();
        let line = Line { graph: &graph, from: &before, parameter: i, direction };
        let noise = line.noise();
        let slopes = [1.0 / 32.0, 1.0 / 128.0, 1.0 / 512.0, 1.0 / 2048.0].map(|h| line.slope(h, noise));
        let slopes = slopes.map(|(slope, tolerance)| (slope, tolerance + rounded + BACKWARD * norm));
        let mut telling = slopes.iter().filter(|(_, tolerance)| *tolerance <= TELLS * norm).peekable();
        counts.all += 1;
        if telling.peek().is_none() {
            continue;
        }
        counts.told += 1;
        if !telling.any(|(slope, tolerance)| (slope - norm).abs() <= *tolerance) {
            counts.missed += 1;
            let path = &parameter.path;
            prop_assert!(
                !smooth,
                "along the gradient of `{path}`, whose norm is {norm}, the loss changes by {slopes:?}"
            );
        }
    }
    Ok(())
}

/// Checks random networks.
fn check_many(smooth: bool) -> Counts {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200);
    let cases = if cfg!(miri) { 2 } else { cases };
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
    let counts = Cell::new(Counts::default());
    let run = runner.run(&recipes(smooth), |recipe| {
        let mut more = counts.get();
        let result = check(recipe, &mut more);
        counts.set(more);
        result
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    println!("{:?}", counts.get());
    counts.get()
}

#[test]
fn finite_differences_of_smooth_networks() {
    let Counts { all, told, .. } = check_many(true);
    assert!(cfg!(miri) || told * 10 >= all * 9, "differences tell something of {told} of {all} gradients");
}

/// Relu, maxima and their like are not smooth, but a random point is hardly ever so near to a bend that it lies within every
/// distance.
#[test]
fn finite_differences_of_networks_with_bends() {
    let Counts { all, told, missed } = check_many(false);
    assert!(cfg!(miri) || told * 10 >= all * 9, "differences tell something of {told} of {all} gradients");
    assert!(missed * 50 <= told, "{missed} of {told} gradients are not the slopes of the loss");
}
