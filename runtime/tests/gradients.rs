//! Gradients against finite differences.

mod common;

use common::{Batch, network, recipes};
use plimsoll_plan::graph::{Graph, ParameterRole};
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_runtime::{Cpu, Trainer};
use proptest::prelude::*;

/// The loss of the first step from given parameters, and the parameters after it.
fn step(graph: &Graph, parameters: &[Vec<f32>]) -> (f64, Vec<Vec<f32>>) {
    let plan = graph.plan().unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::with_threads(1).unwrap(), 5).unwrap();
    for (parameter, values) in graph.parameters.iter().zip(parameters) {
        trainer.load_parameter(&parameter.path, values).unwrap();
    }
    let batch = Batch::new(graph, graph.declared_batch(), 3);
    let loss = trainer.step(batch.slices().as_slice(), batch.targets(graph)).unwrap();
    let after = graph.parameters.iter().map(|p| trainer.parameter(&p.path).unwrap());
    (f64::from(loss), after.collect())
}

fn initial(graph: &Graph) -> Vec<Vec<f32>> {
    let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), Cpu::with_threads(1).unwrap(), 5).unwrap();
    graph.parameters.iter().map(|p| trainer.parameter(&p.path).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { std::env::var("CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(200) }, failure_persistence: None, ..Default::default() })]

    /// Along the gradient of each parameter, the loss changes as the gradient says. One step of plain gradient descent with
    /// a learning rate of 1 tells the gradient.
    #[test]
    fn finite_differences(recipe in recipes(true)) {
        // Batch normalization may see one value per sample, and needs two.
        let recipe = common::Recipe { batch: recipe.batch.max(2), ..recipe };
        let mut graph = network(&recipe);
        let training = graph.training.as_mut().unwrap();
        training.optimizer =
            Optimizer::Sgd { lr: 1.0, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false };
        training.accumulate = 1;
        training.clip_grad_norm = None;
        if matches!(training.loss, Loss::L1 | Loss::SmoothL1 { .. }) {
            training.loss = Loss::Mse;
        }
        let before = initial(&graph);
        let (loss, after) = step(&graph, &before);
        for (i, parameter) in graph.parameters.iter().enumerate() {
            let gradient: Vec<f64> =
                before[i].iter().zip(&after[i]).map(|(b, a)| f64::from(*b) - f64::from(*a)).collect();
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            match parameter.role {
                ParameterRole::Trained => {}
                ParameterRole::Frozen => {
                    prop_assert_eq!(norm, 0.0, "`{}` is frozen", parameter.path);
                    continue;
                }
                ParameterRole::Buffer => continue,
            }
            let along = |distance: f64| {
                let mut moved = before.clone();
                for (x, g) in moved[i].iter_mut().zip(&gradient) {
                    *x += (distance * g / norm.max(1e-30)) as f32;
                }
                step(&graph, &moved).0
            };
            // Too flat for floats to tell, or so steep that the loss is no smooth curve over the distance.
            if !(1e-3..30.0).contains(&norm) {
                continue;
            }
            // Richardson's extrapolation takes the curvature out of two differences.
            let difference = |h: f64| (along(h) - along(-h)) / (2.0 * h);
            let slope = |h: f64| (16.0 * difference(h) - difference(4.0 * h)) / 15.0;
            // The loss is a float: its rounding, over a small distance, is an error of the slope.
            let fits = |slope: f64| (slope - norm).abs() < 0.02 * norm + 2e-3 * (1.0 + loss.abs());
            // Over a short distance rounding is in the way, over a long one the curvature. A gradient that is wrong is so
            // over every distance.
            let distances = [1e-3, 4e-3, 2.5e-4];
            let found = distances.iter().map(|h| slope(*h)).find(|slope| fits(*slope));
            prop_assert!(
                found.is_some(),
                "the loss changes by {} along the gradient of `{}`, whose norm is {norm}", slope(1e-3), parameter.path
            );
        }
    }
}
