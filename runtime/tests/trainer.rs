//! Trainers of small networks on the CPU: numbers worked out by hand, and the mistakes that a caller can make.

use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training};
use plimsoll_plan::layers;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::shape::DType;
use plimsoll_runtime::cpu::MAX_THREADS;
use plimsoll_runtime::data::{Loader, TensorDataset};
use plimsoll_runtime::{Cpu, Error, Predictor, Slice, Trainer};

fn linear(out_features: u64) -> layers::Layer {
    layers::Layer::Linear(layers::linear::Linear { out_features, bias: true })
}

/// 4 inputs, 8 hidden units, 3 outputs.
fn mlp(batch: u64, loss: Loss, optimizer: Optimizer) -> Graph {
    let mut builder = GraphBuilder::new("Mlp");
    let x = builder.input("x", DType::F32, &[4]).unwrap();
    let fc1 = builder.member("fc1", linear(8), false);
    let fc2 = builder.member("fc2", linear(3), false);
    let h = builder.call(fc1, &[x]).unwrap();
    let relu = layers::Layer::Activation(layers::activation::Activation::Relu);
    let h = builder.apply("", relu, &[h]).unwrap();
    let y = builder.call(fc2, &[h]).unwrap();
    let training = Training { batch, optimizer, loss, accumulate: 1, clip_grad_norm: None };
    builder.finish(y, Some(training), None, Budget::default()).unwrap()
}

fn cross_entropy() -> Loss {
    Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: -100 }
}

fn adam() -> Optimizer {
    Optimizer::by_name("adam").unwrap()
}

/// Four well separated classes of points.
fn batch(samples: usize) -> (Vec<f32>, Vec<i32>) {
    let targets: Vec<i32> = (0..samples as i32).map(|i| i % 3).collect();
    let row = |t: i32| (0..4).map(move |j| if j == t { 1.0 } else { 0.1 * j as f32 });
    (targets.iter().flat_map(|t| row(*t)).collect(), targets)
}

#[test]
fn learns() {
    let plan = mlp(6, cross_entropy(), Optimizer::Adam { lr: 0.02, betas: [0.9, 0.999], eps: 1e-8, weight_decay: 0.0 })
        .plan()
        .unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
    assert_eq!(trainer.allocated_bytes(), plan.peak_bytes());
    let (inputs, targets) = batch(6);
    let first = trainer.step(&inputs, &targets).unwrap();
    for _ in 0..300 {
        trainer.step(&inputs, &targets).unwrap();
    }
    // A batch smaller than declared runs in the same plan.
    let last = trainer.step(&inputs[..12], &targets[..3]).unwrap();
    assert!((first - 3f32.ln()).abs() < 0.5, "an untrained network is undecided: {first}");
    assert!(last < 0.05, "from {first} only to {last}");
    let metrics = trainer.evaluate([(&inputs, &targets), (&inputs, &targets)]).unwrap();
    assert_eq!(metrics.samples(), 12);
    assert_eq!(metrics.accuracy(), 1.0);
    assert_eq!(metrics.top5(), 1.0);
    assert!((metrics.loss() - f64::from(last)).abs() < 0.02);

    // The same outputs in the memory of inference alone.
    let mut predictor = Predictor::from_plan(&plan, Cpu::new(), 0).unwrap();
    assert_eq!(predictor.allocated_bytes(), plan.inference_bytes());
    for name in ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"] {
        predictor.load_parameter(name, &trainer.parameter(name).unwrap()).unwrap();
    }
    assert_eq!(predictor.predict(&inputs).unwrap(), trainer.predict(&inputs).unwrap());
}

/// A regression from a loader. The network's output is its last bias, [1, 2, 3]; the targets are [0, 2, 5] and [1, 1, 1], so that
/// the squares of the errors are 1, 0, 4, 0, 1, 4, and their mean 10 / 6.
#[test]
fn targets_from_a_loader_are_numbers() {
    let plan = mlp(1, Loss::Mse, adam()).plan().unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
    trainer.load_parameter("fc2.weight", &[0.0; 24]).unwrap();
    trainer.load_parameter("fc2.bias", &[1.0, 2.0, 3.0]).unwrap();
    let dataset = TensorDataset::new([4], vec![0.5f32; 8], vec![0.0f32, 2.0, 5.0, 1.0, 1.0, 1.0]).unwrap();
    let mut loader = Loader::new(dataset, 1).unwrap();
    let metrics = trainer.evaluate_loader(&mut loader).unwrap();
    assert_eq!((metrics.samples(), metrics.loss()), (2, 10.0 / 6.0));
    assert!(metrics.accuracy().is_nan());
    let text = format!("{metrics:?}");
    assert_eq!(text, "Metrics { samples: 2, loss: 1.6666666666666667, accuracy: NaN, top5: NaN }");
    let losses: Vec<f32> = loader
        .epoch()
        .map(|batch| {
            let batch = batch.unwrap();
            trainer.step(batch.inputs(), batch.targets()).unwrap()
        })
        .collect();
    assert_eq!((losses.len(), losses[0]), (2, 5.0 / 3.0));
}

#[test]
fn initial_values_are_within_pytorchs_bounds() {
    let plan = mlp(1, cross_entropy(), adam()).plan().unwrap();
    let mut a = Trainer::from_plan(&plan, Cpu::new(), 1).unwrap();
    let mut b = Trainer::from_plan(&plan, Cpu::new(), 1).unwrap();
    let mut c = Trainer::from_plan(&plan, Cpu::new(), 2).unwrap();
    let weight = a.parameter("fc1.weight").unwrap();
    assert!(weight.iter().all(|w| w.abs() <= 0.5) && weight.iter().any(|w| w.abs() > 0.4));
    assert_eq!(weight, b.parameter("fc1.weight").unwrap());
    assert_ne!(weight, c.parameter("fc1.weight").unwrap());
    assert_ne!(weight[..8], a.parameter("fc1.bias").unwrap());
}

/// An arena larger than the address space of any machine.
#[test]
fn too_large_an_arena_is_an_error_with_a_remedy() {
    let mut builder = GraphBuilder::new("Huge");
    let x = builder.input("x", DType::F32, &[1 << 26]).unwrap();
    let fc = builder.member("fc", linear(3), false);
    let y = builder.call(fc, &[x]).unwrap();
    let training =
        Training { batch: 1 << 30, optimizer: adam(), loss: cross_entropy(), accumulate: 1, clip_grad_norm: None };
    let plan = builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap();
    let Err(error) = Trainer::from_plan(&plan, Cpu::new(), 1) else { panic!("it fits") };
    let bytes = plan.peak_bytes();
    assert!(matches!(error, Error::OutOfMemory { bytes: needed, .. } if needed == bytes), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the CPU has no {bytes} bytes free, which the plan needs in one piece\n\
             help: use a smaller batch, or end other programs that use the memory"
        )
    );
}

/// Seven classes, ranked by hand. The network adds nothing to its inputs, which are so the outputs.
#[test]
fn accuracy_of_the_first_and_of_the_first_five() {
    let mut builder = GraphBuilder::new("Ranked");
    let x = builder.input("x", DType::F32, &[7]).unwrap();
    let scale = builder.member("scale", layers::Layer::Scale(layers::scale::Scale { init: 1.0 }), false);
    let y = builder.call(scale, &[x]).unwrap();
    let loss = Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: 6 };
    let training = Training { batch: 8, optimizer: adam(), loss, accumulate: 1, clip_grad_norm: None };
    let plan = builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 1).unwrap();

    let falling = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
    // A tie of all: classes rank as they are numbered, as PyTorch's `argmax` takes the first of equals.
    let equal = [1.0; 7];
    // The second and third place are tied, and so are the fifth and the sixth.
    let tied = [2.0, 9.0, 5.0, 2.0, 5.0, 3.0, 0.0];
    let nan = [0.0, f32::NAN, 0.0, 0.0, 0.0, 0.0, 0.0];
    for (outputs, target, first, first_five) in [
        (falling, 0, true, true),
        (falling, 4, false, true),
        (falling, 5, false, false),
        (equal, 0, true, true),
        (equal, 4, false, true),
        (equal, 5, false, false),
        (tied, 1, true, true),
        (tied, 2, false, true),
        (tied, 0, false, true),
        (tied, 3, false, false),
        // What is no number is no hit.
        (nan, 1, false, false),
    ] {
        let metrics = trainer.evaluate([(&outputs, &[target])]).unwrap();
        let counts = (metrics.samples(), metrics.accuracy(), metrics.top5());
        assert_eq!(counts, (1, f64::from(first), f64::from(first_five)), "{target} of {outputs:?}");
    }
    // Four targets that count, two of them first and three among five; the fifth, the last class, is ignored.
    let outputs = [falling, equal, tied, falling, falling].concat();
    let metrics = trainer.evaluate([(&outputs, &[0, 5, 1, 4, 6])]).unwrap();
    assert_eq!((metrics.samples(), metrics.accuracy(), metrics.top5()), (5, 0.5, 0.75));
}

#[test]
fn mistakes_have_names() {
    let plan = mlp(2, cross_entropy(), adam()).plan().unwrap();
    let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
    let message = |result: Result<f32, Error>| result.unwrap_err().to_string();
    let (x, t) = ([0.0f32; 8], [0i32, 1]);
    assert_eq!(
        message(trainer.step((&x, &x), &t)),
        "`Mlp` declares 1 as the number of its inputs, but 2 were given: pass a tuple of slices in declared order"
    );
    assert_eq!(message(trainer.step(&[0u8; 8], &t)), "the input `x` must be f32, but u8 were given");
    assert_eq!(
        message(trainer.step(&x[..7], &t)),
        "the input `x` has 7 elements, which is no whole number of samples of 4 elements each"
    );
    assert_eq!(message(trainer.step(&x, &t[..1])), "the target tensor has 1 samples, but the first input has 2");
    assert_eq!(
        message(trainer.step(&[0.0; 12], &[0, 1, 2])),
        "a batch of 3 samples: this plan takes from 1 to 2, the batch that the network declares"
    );
    assert_eq!(
        message(trainer.step(&x, &[0, 3])),
        "the target of sample 1 is 3, but the classes are 0 to 2 (or -100, to leave a sample out)"
    );
    for (name, suggestion) in [("", ""), ("gamma", ""), ("fc1.wieght", ": is it `fc1.weight`?")] {
        let error = trainer.load_parameter(name, &[]).unwrap_err().to_string();
        assert_eq!(error, format!("`Mlp` has no parameter `{name}`{suggestion}"));
    }
    assert_eq!(
        trainer.load_parameter("net.fc1.weight", &[]).unwrap_err().to_string(),
        "`Mlp` has no parameter `net.fc1.weight`: is it `fc1.weight`?"
    );
    assert_eq!(
        trainer.load_parameter("fc1.weight", &[1.0]).unwrap_err().to_string(),
        "`fc1.weight` has 32 elements, but 1 were given"
    );
    trainer.step(&x, &t).unwrap();
    let loss = message(trainer.step(&[f32::NAN; 8], &t));
    assert!(loss.starts_with("the loss of step 2 is NaN: training has diverged"), "{loss}");
    let untrained = Trainer::from_plan(&plan.graph.inference_only().plan().unwrap(), Cpu::new(), 42);
    assert_eq!(untrained.err().unwrap().to_string(), "`Mlp` is not trained: it has no `#[train(...)]`");
}

/// A parameter that the loss does not depend on stays as it is, whether or not gradients are accumulated.
#[test]
fn what_the_loss_does_not_depend_on_stays() {
    for accumulate in [1, 2] {
        let mut builder = GraphBuilder::new("Aside");
        let x = builder.input("x", DType::F32, &[4]).unwrap();
        let used = builder.member("used", linear(3), false);
        let aside = builder.member("aside", linear(3), false);
        let y = builder.call(used, &[x]).unwrap();
        builder.call(aside, &[x]).unwrap();
        let optimizer = Optimizer::Sgd { lr: 0.1, momentum: 0.0, dampening: 0.0, weight_decay: 0.5, nesterov: false };
        let training = Training { batch: 3, optimizer, loss: cross_entropy(), accumulate, clip_grad_norm: None };
        let plan = builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap();
        let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
        let weights =
            |trainer: &mut Trainer<(), Cpu>| ["used.weight", "aside.weight"].map(|n| trainer.parameter(n).unwrap());
        let before = weights(&mut trainer);
        let (inputs, targets) = batch(3);
        for _ in 0..accumulate {
            trainer.step(&inputs, &targets).unwrap();
        }
        let after = weights(&mut trainer);
        assert_ne!(before[0], after[0]);
        assert_eq!(before[1], after[1]);
    }
}

/// Two batches of which the gradients are averaged are one batch of twice the size.
#[test]
fn accumulation_is_a_larger_batch() {
    let sgd = Optimizer::Sgd { lr: 0.1, momentum: 0.9, dampening: 0.0, weight_decay: 0.0, nesterov: false };
    let whole = mlp(6, cross_entropy(), sgd.clone()).plan().unwrap();
    let halves = mlp(3, cross_entropy(), sgd).accumulate(2).plan().unwrap();
    let mut whole = Trainer::from_plan(&whole, Cpu::new(), 42).unwrap();
    let mut halves = Trainer::from_plan(&halves, Cpu::new(), 42).unwrap();
    let (inputs, targets) = batch(6);
    for _ in 0..5 {
        whole.step(&inputs, &targets).unwrap();
        halves.step(&inputs[..12], &targets[..3]).unwrap();
        halves.step(&inputs[12..], &targets[3..]).unwrap();
    }
    assert_eq!((whole.updates(), halves.updates()), (5, 5));
    for name in ["fc1.weight", "fc2.bias"] {
        let (a, b) = (whole.parameter(name).unwrap(), halves.parameter(name).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{name}: {a:?} {b:?}");
    }
}

/// A mean over no targets is no number, but nothing has diverged.
#[test]
fn a_batch_of_ignored_targets_is_refused() {
    let mut trainer = Trainer::from_plan(&mlp(2, cross_entropy(), adam()).plan().unwrap(), Cpu::new(), 42).unwrap();
    let before = trainer.parameter("fc1.weight").unwrap();
    let error = trainer.step(&[0.5; 8], &[-100, -100]).unwrap_err().to_string();
    assert_eq!(
        error,
        "every target of this batch is `ignore_index` (-100): nothing to learn from it\nhelp: leave the batch out"
    );
    assert_eq!((before, trainer.batches()), (trainer.parameter("fc1.weight").unwrap(), 0));
    trainer.step(&[0.5; 8], &[-100, 1]).unwrap();
    trainer.evaluate([(&[0.5; 8], &[-100, -100])]).unwrap();
}

#[test]
fn batch_normalization_needs_two_values() {
    for positions in [1, 2] {
        let mut builder = GraphBuilder::new("Normed");
        let x = builder.input("x", DType::F32, &[3, positions]).unwrap();
        let layer = layers::batchnorm::BatchNorm { axes: 1, eps: 1e-5, momentum: 0.1, affine: true };
        let norm = builder.member("stem.norm", layers::Layer::BatchNorm(layer), false);
        let y = builder.call(norm, &[x]).unwrap();
        let training = Training { batch: 2, optimizer: adam(), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
        let plan = builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap();
        let mut trainer = Trainer::from_plan(&plan, Cpu::new(), 42).unwrap();
        let values = [0.5f32; 12];
        let (one, two) = (&values[..3 * positions as usize], &values[..6 * positions as usize]);
        trainer.step(two, two).unwrap();
        let step = trainer.step(one, one);
        if positions > 1 {
            step.unwrap();
            continue;
        }
        assert_eq!(
            step.unwrap_err().to_string(),
            "`stem.norm` normalizes each channel over the batch, but a batch of 1 sample has only one value per channel \
             when training\nhelp: use a larger batch; if this is the last one of an epoch, drop it (`drop_last`)"
        );
        assert_eq!(trainer.batches(), 1);
        trainer.predict(one).unwrap();
    }
}

/// Whatever stands in a tuple is counted.
#[test]
fn tuples_in_tuples_lose_no_inputs() {
    let mut trainer = Trainer::from_plan(&mlp(2, cross_entropy(), adam()).plan().unwrap(), Cpu::new(), 42).unwrap();
    let (x, t) = ([0.5f32; 8], [0, 1]);
    let (none, one): (&[Slice], &[Slice]) = (&[], &[Slice::F32(&x)]);
    assert!(matches!(trainer.step((none,), &t), Err(Error::InputCount { expected: 1, given: 0, .. })));
    assert!(matches!(trainer.step(((&x, &x, &x),), &t), Err(Error::InputCount { expected: 1, given: 3, .. })));
    trainer.step((none, one), &t).unwrap();
    trainer.step(((&x,),), &t).unwrap();
}

#[test]
fn settings_without_sense_are_refused() {
    let graph = mlp(2, cross_entropy(), adam());
    // The planner may refuse it first.
    if let Ok(plan) = graph.clone().accumulate(0).plan() {
        let error = Trainer::from_plan(&plan, Cpu::new(), 42).err().unwrap().to_string();
        assert!(error.contains("`Mlp` has `accumulate = 0`"), "{error}");
    }
    let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), Cpu::new(), 42).unwrap();
    for rate in [f64::NAN, f64::INFINITY, -0.1] {
        let error = trainer.set_learning_rate(rate).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the learning rate is {rate}\nhelp: ")), "{error}");
    }
    assert_eq!(trainer.learning_rate(), 0.001);
    trainer.set_schedule(|_| f64::NAN);
    assert!(matches!(trainer.step(&[0.5; 8], &[0, 1]), Err(Error::Argument { .. })));
    assert_eq!((trainer.batches(), trainer.learning_rate()), (0, 0.001));
    trainer.set_learning_rate(0.0).unwrap();
    assert_eq!(MAX_THREADS, 256);
    Cpu::with_threads(3000).unwrap();
}

#[test]
fn damaged_plans_are_errors() {
    let plan = mlp(2, cross_entropy(), adam()).plan().unwrap();
    let error = |offset: &dyn Fn(&mut Vec<u64>)| {
        let mut plan = plan.clone();
        offset(&mut plan.training.as_mut().unwrap().placement.offsets);
        offset(&mut plan.inference.placement.offsets);
        let trainer = Trainer::from_plan(&plan, Cpu::new(), 42).err().unwrap().to_string();
        let predictor = Predictor::from_plan(&plan, Cpu::new(), 42).err().unwrap().to_string();
        assert!(trainer.starts_with("the plan is damaged: "), "{trainer}");
        assert!(predictor.starts_with("the plan is damaged: "), "{predictor}");
        trainer
    };
    assert!(error(&|offsets| offsets.fill(0)).contains("overlap"));
    assert!(error(&|offsets| offsets[1] += 1).contains("not aligned"));
    assert!(error(&|offsets| offsets[0] = 1 << 40).contains("beyond the arena"));
    assert!(error(&|offsets| offsets[0] = !0xFFF).contains("beyond"));
    assert!(error(&|offsets| offsets.truncate(3)).contains("places for them"));
}
