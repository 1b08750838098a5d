//! Training with recomputation is the same training: losses, weights and running statistics, bit by bit.

use plimsoll::plan::graph::Graph;
use plimsoll::plan::optimizers::Optimizer;
use plimsoll::plan::plan::Plan;
use plimsoll::plan::strategy::Saving;
use plimsoll::plan::validate::validate;
use plimsoll::{Cpu, Network, Slice, Trainer, network};

network! {
    #[train(batch = 6, optimizer = adam(lr = 1e-2), loss = cross_entropy)]
    struct Residual(image: f32[3, 16, 16]) {
        conv1: conv2d(8, kernel = 3, padding = 1, bias = false),
        bn1: batchnorm2d,
        relu,
        layer1: [Basic(8); 5],
        layer2: [Basic(16, stride = 2), Basic(16), Basic(16)],
        dropout(0.3),
        pool: adaptive_avgpool2d(1),
        flatten,
        fc: linear(10),
    }

    block Basic(channels, stride = 1) {
        conv1: conv2d(channels, kernel = 3, stride = stride, padding = 1, bias = false),
        bn1: batchnorm2d,
        conv2: conv2d(channels, kernel = 3, padding = 1, bias = false),
        bn2: batchnorm2d,
        downsample: if stride != 1 { [conv2d(channels, kernel = 1, stride = stride, bias = false), batchnorm2d] },

        fn forward(x) {
            let y = x.conv1().bn1().relu().dropout(0.2).conv2().bn2();
            relu(y + downsample(x))
        }
    }
}

network! {
    #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = bce_with_logits)]
    struct Segments(image: f32[1, 24, 24]) {
        down1: Twice(6),
        down2: Twice(12),
        bottom: Twice(24),
        up2: conv_transpose2d(12, kernel = 2, stride = 2),
        join2: Twice(12),
        up1: conv_transpose2d(6, kernel = 2, stride = 2),
        join1: Twice(6),
        head: conv2d(1, kernel = 1),

        fn forward(image) {
            let a = image.down1();
            let b = a.maxpool2d(2).down2();
            let x = b.maxpool2d(2).bottom().dropout(0.25);
            let x = concat(up2(x), b).join2();
            concat(up1(x), a).join1().head()
        }
    }

    block Twice(channels) {
        conv1: conv2d(channels, kernel = 3, padding = 1), bn1: batchnorm2d, relu1: relu,
        conv2: conv2d(channels, kernel = 3, padding = 1), bn2: batchnorm2d, relu2: relu,
    }
}

/// The plan that saves nothing, and those for half of its transient memory and for the least that is reached.
fn plans(graph: &Graph) -> [Plan; 3] {
    let plain = graph.clone().without(Saving::BEYOND_IN_PLACE).plan().expect("a plan");
    let placement = &plain.training.as_ref().expect("training").placement;
    let half = placement.persistent_bytes + placement.transient_bytes() / 2;
    let [half, least] = [half, 1].map(|budget| graph.clone().budget(budget).recompute().plan().expect("a plan"));
    [plain, half, least]
}

fn length(plan: &Plan) -> u64 {
    plan.training.as_ref().expect("training").placement.length
}

/// Numbers from -1 to 1 that vary, the same at each call.
fn numbers(count: u64) -> Vec<f32> {
    (0..count).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect()
}

/// Trains on one batch. The bits of all losses, then the trainer.
fn train(plan: &Plan, steps: usize) -> (Vec<u32>, Trainer<(), Cpu>) {
    let graph = &plan.graph;
    let batch = graph.declared_batch();
    let image = numbers(batch * graph.inputs[0].value_type.elements());
    let classes: Vec<i32> = (0..batch as i32).collect();
    let mask: Vec<f32> = numbers(batch * graph.target_type().expect("a target").elements());
    let mask: Vec<f32> = mask.iter().map(|x| f32::from(u8::from(*x > 0.0))).collect();
    let targets = if mask.len() as u64 == batch { Slice::from(&classes) } else { Slice::from(&mask) };
    let mut trainer = Trainer::from_plan(plan, Cpu::with_threads(2).expect("threads"), 42).expect("a trainer");
    let losses = (0..steps).map(|_| trainer.step(&[Slice::from(&image)][..], targets).expect("a step").to_bits());
    (losses.collect(), trainer)
}

/// All parameters and running statistics, by name.
fn state(graph: &Graph, trainer: &mut Trainer<(), Cpu>) -> Vec<(String, Vec<u32>)> {
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
    let mut read = |path: &str| bits(trainer.parameter(path).expect("a parameter"));
    graph.parameters.iter().map(|parameter| (parameter.path.clone(), read(&parameter.path))).collect()
}

#[test]
fn recomputation_changes_no_bit() {
    for graph in [Residual::graph(), Segments::graph()] {
        let plans = plans(&graph);
        plans.iter().for_each(|plan| validate(plan).expect("a valid plan"));
        let [plain, half, least] = plans.each_ref().map(length);
        assert!(half < plain && least <= half, "{}: {plain}, {half}, {least} bytes", graph.name);
        let [plain, others @ ..] = &plans;
        let (losses, mut trainer) = train(plain, 3);
        assert!(losses[0] != losses[1] && losses[1] != losses[2], "the network learns something");
        let expected = state(&graph, &mut trainer);
        for plan in others {
            let compute = plan.training.as_ref().expect("training").compute(&graph);
            assert!(compute > 1.0, "{}: something is computed again", graph.name);
            let (found, mut trainer) = train(plan, 3);
            assert_eq!(found, losses, "{} at {compute:.2}x the compute", graph.name);
            for (expected, found) in expected.iter().zip(state(&graph, &mut trainer)) {
                assert_eq!(*expected, found, "{} at {compute:.2}x the compute", graph.name);
            }
        }
    }
}

/// `running <- 0.9 running + 0.1 mean`, from 0: where the weights stay as they are, a step makes it 0.1 of the batch's mean,
/// and three steps 1 - 0.9^3 = 0.271 of it. Moved twice a step it would be 0.19 and 0.468559.
#[test]
fn running_statistics_move_once_a_step() {
    // Dropout comes after it, so that the mean is the same in every step.
    let norms = [(Residual::graph(), "bn1.running_mean"), (Segments::graph(), "down1.bn2.running_mean")];
    for (graph, name) in norms {
        let still = Optimizer::Sgd { lr: 0.0, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false };
        for plan in plans(&graph.optimizer(still)) {
            let [once, thrice] = [1, 3].map(|steps| train(&plan, steps).1.parameter(name).expect("a norm"));
            assert!(once.iter().any(|mean| mean.abs() > 1e-4), "{name}: {once:?}");
            for (once, thrice) in once.iter().zip(&thrice) {
                assert!((thrice - 2.71 * once).abs() <= 1e-5 * thrice.abs() + 1e-8, "{name}: {once}, then {thrice}");
            }
        }
    }
}
