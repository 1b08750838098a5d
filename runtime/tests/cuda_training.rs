//! Trainers on CUDA: the CPU's numbers, exactly the planned bytes, the same bits however memory and threads are arranged,
//! and an error with its context for whatever fails.

mod card;
mod common;

use card::Card;
use common::{Batch, Recipe, joined, network, train, train_plan};
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training, ValueId};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::layers::arithmetic::Arithmetic;
use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::layers::conv_transpose::ConvTranspose;
use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::layers::pool::{AdaptivePool, Pool, Reduction};
use plimsoll_plan::layers::view::View;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::lower::Facts;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::StepKind;
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::{Strategy, cheap};
use plimsoll_runtime::device::{AnyDevice, best};
use plimsoll_runtime::philox::{Purpose, Stream};
use plimsoll_runtime::proof::{Apart, Poisoned};
use plimsoll_runtime::{Cpu, Cuda, Device, Error, Predictor, Trainer};

/// Convolutions with a residual, batch-norm, pooling and dropout.
fn cnn() -> Graph {
    let mut builder = GraphBuilder::new("Cnn");
    let mut x = builder.input("x", DType::F32, &[3, 8, 8]).unwrap();
    x = conv(&mut builder, "stem", x, 8, 1);
    x = apply(&mut builder, x, Layer::Activation(Activation::Relu));
    let y = conv(&mut builder, "body", x, 8, 1);
    let y = apply(&mut builder, y, Layer::Dropout(Dropout { p: 0.25 }));
    x = builder.apply("", Layer::Arithmetic(Arithmetic::Add), &[y, x]).unwrap();
    x = apply(&mut builder, x, Layer::Activation(Activation::Relu));
    let window = Window { kernel: [2, 2], stride: [2, 2], padding: [0, 0], dilation: [1, 1] };
    x = apply(&mut builder, x, Layer::Pool(Pool { reduction: Reduction::Max, window, ceil_mode: false }));
    x = conv(&mut builder, "last", x, 12, 2);
    x = apply(&mut builder, x, Layer::Activation(Activation::Gelu { tanh: false }));
    x = apply(&mut builder, x, Layer::AdaptivePool(AdaptivePool { max: false, size: [1, 1] }));
    x = apply(&mut builder, x, Layer::View(View::Flatten { start_axis: 0 }));
    let head = builder.member("head", Layer::Linear(Linear { out_features: 5, bias: true }), false);
    x = builder.call(head, &[x]).unwrap();
    let training = Training {
        batch: 4,
        optimizer: Optimizer::Sgd { lr: 0.05, momentum: 0.9, dampening: 0.0, weight_decay: 1e-3, nesterov: false },
        loss: Loss::CrossEntropy { label_smoothing: 0.1, ignore_index: -100 },
        accumulate: 1,
        clip_grad_norm: None,
    };
    builder.finish(x, Some(training), None, Budget::default()).unwrap()
}

fn apply(builder: &mut GraphBuilder, x: ValueId, layer: Layer) -> ValueId {
    builder.apply("", layer, &[x]).unwrap()
}

/// A convolution of 3 x 3 with its batch-norm.
fn conv(builder: &mut GraphBuilder, name: &str, x: ValueId, out_channels: u64, stride: u64) -> ValueId {
    let window = Window { kernel: [3, 3], stride: [stride; 2], padding: [1, 1], dilation: [1, 1] };
    let conv = builder.member(name, Layer::Conv(Conv { axes: 2, out_channels, window, groups: 1, bias: false }), false);
    let x = builder.call(conv, &[x]).unwrap();
    let norm = Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-5, momentum: 0.1, affine: true });
    let norm = builder.member(&format!("{name}_bn"), norm, false);
    builder.call(norm, &[x]).unwrap()
}

/// Some steps of training: the losses, and all parameters and running statistics after them.
fn steps<D: Device>(graph: &Graph, device: D, steps: u64) -> Result<Vec<(String, Vec<f32>)>, Error> {
    let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), device, 42)?;
    let mut losses = Vec::new();
    for step in 0..steps {
        let batch = Batch::new(graph, graph.declared_batch(), step);
        losses.push(trainer.step(batch.slices().as_slice(), batch.targets(graph))?);
    }
    let mut all = vec![("loss".to_string(), losses)];
    for parameter in &graph.parameters {
        all.push((parameter.path.clone(), trainer.parameter(&parameter.path)?));
    }
    Ok(all)
}

/// A tensor of smaller numbers than this may be mere rounding, which is another on each device: a running mean of what a
/// normalization has centred, the bias of a layer whose mean is taken off again. Of the tensors below, two are: their
/// largest numbers are 2e-9 and 1e-11. All others are within 2e-6 of their own largest number.
const LEAST: f32 = 1e-4;

/// Fails where an element is off by more than 1e-5 of its tensor's largest magnitude.
fn assert_close(cuda: &[(String, Vec<f32>)], cpu: &[(String, Vec<f32>)]) {
    assert_eq!(cuda.len(), cpu.len());
    for ((name, got), (_, expected)) in cuda.iter().zip(cpu) {
        let largest = expected.iter().fold(LEAST, |largest, x| largest.max(x.abs()));
        let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f32::max);
        assert!(off <= 1e-5, "{name} is off by {off:.1e}: {got:?} is not {expected:?}");
    }
}

#[test]
fn five_steps_of_a_cnn_are_the_cpus() {
    let card = Card::new();
    let cpu = steps(&cnn(), Cpu::new(), 5).unwrap();
    assert_close(&steps(&cnn(), card.cuda(), 5).unwrap(), &cpu);
    assert_close(&steps(&cnn(), card.cuda().without_cublas(), 5).unwrap(), &cpu);
}

/// Random networks of smooth layers.
fn random_networks() -> impl Iterator<Item = Graph> {
    let numbers = Stream::new(5, Purpose::Shuffle, 0, 0);
    (0..24u64).map(move |case| {
        let words = (0..3).flat_map(|block| numbers.words(case * 3 + block));
        network(&Recipe {
            layers: words.map(|word| u64::from(word) << 32 | u64::from(word.rotate_left(7))).collect(),
            batch: 3,
            // Not Adam and its like, nor the absolute error: they make much of a gradient that is nothing but rounding.
            optimizer: case as usize % 2,
            loss: case as usize % 5,
            accumulate: 1 + case % 2,
            clip: case.is_multiple_of(3),
            smooth: true,
        })
    })
}

#[test]
fn random_networks_are_the_cpus() {
    let card = Card::new();
    for graph in random_networks() {
        let cpu = match steps(&graph, Cpu::new(), 2) {
            // Batch normalization may see a single value.
            Err(Error::OneValue { .. }) => continue,
            cpu => cpu.unwrap(),
        };
        assert_close(&steps(&graph, card.cuda(), 2).unwrap(), &cpu);
    }
}

#[test]
fn memory_and_the_order_of_threads_change_no_bit() {
    let card = Card::new();
    for graph in random_networks().take(12).chain([cnn()]) {
        let bits = train(&graph, card.cuda(), 2);
        assert_eq!(bits, train(&graph, Poisoned::new(card.cuda()), 2), "with poison");
        assert_eq!(bits, train(&graph, Apart::new(card.cuda()), 2), "apart");
        assert_eq!(bits, card.backwards(|| train(&graph, card.cuda(), 2)), "the last thread first");
    }
    card.assert_started(&["dropout"]);
}

/// What is computed again comes out the same. Only a gradient that is added to the momentum may differ, by the rounding of a
/// sum in another order.
#[test]
fn savings_change_nothing() {
    let card = Card::new();
    for graph in random_networks().take(12).chain([cnn()]) {
        let facts = Facts::new(&graph, true);
        let in_place = facts.clone().with_concats_in_place(&graph);
        let [plain, thorough] = [Strategy::plain(&facts), Strategy::thorough(&graph, &in_place)]
            .map(|strategy| Plan::with_strategy(graph.clone(), strategy).unwrap());
        let sums = thorough.training.as_ref().unwrap().strategy.momentum_gradients;
        let [plain, saved] = [plain, thorough].map(|plan| train_plan(&plan, card.cuda(), 2));
        assert_eq!(plain.len(), saved.len());
        let largest = plain.iter().map(|bits| f32::from_bits(*bits).abs()).fold(1.0, f32::max);
        for (plain, saved) in plain.iter().zip(&saved) {
            let [a, b] = [plain, saved].map(|bits| f32::from_bits(*bits));
            assert!(plain == saved || (sums && (a - b).abs() <= 1e-5 * largest), "{a} and {b}");
        }
    }
}

/// Concats that are never made: the numbers of the CPU, and nearly those of the concats that are, whose products may be added
/// up in another order.
#[test]
fn concats_in_place_are_the_same() {
    let card = Card::new();
    let numbers = Stream::new(6, Purpose::Shuffle, 0, 0);
    for case in 0..16u64 {
        let words = (0..3).flat_map(|block| numbers.words(case * 3 + block));
        let graph = joined(&Recipe {
            layers: words.map(|word| u64::from(word) << 32 | u64::from(word.rotate_left(7))).collect(),
            batch: 3,
            optimizer: case as usize % 2,
            loss: case as usize % 5,
            accumulate: 1,
            clip: false,
            smooth: true,
        });
        let facts = Facts::new(&graph, true);
        let in_place = facts.clone().with_concats_in_place(&graph);
        assert!(in_place.parts.iter().any(|parts| parts.len() >= 3));
        let [made, in_place] = [Strategy::plain(&facts), Strategy::thorough(&graph, &in_place)]
            .map(|strategy| Plan::with_strategy(graph.clone(), strategy).unwrap());
        let bits = train_plan(&in_place, card.cuda(), 2);
        assert_nearly(&train_plan(&made, card.cuda(), 2), &bits);
        assert_nearly(&train_plan(&in_place, Cpu::new(), 2), &bits);
        assert_eq!(bits, train_plan(&in_place, Poisoned::new(card.cuda()), 2), "with poison");
        assert_eq!(bits, train_plan(&in_place, Apart::new(card.cuda()), 2), "apart");
    }
}

/// Products, dropout and batch normalization that run again give the same bits, and running statistics move once.
#[test]
fn recomputation_changes_nothing() {
    let card = Card::new();
    for graph in random_networks().take(8).chain([cnn()]) {
        let facts = Facts::new(&graph, true);
        let saved = cheap::saved(&graph, &facts);
        // Some of what backward reads is computed again, and some of that twice.
        let values = |every: u32| -> Vec<ValueId> {
            let computed = (graph.inputs.len() as u32..graph.types.len() as u32).filter(|value| value % every == 0);
            computed.map(ValueId).filter(|value| saved[value.index()]).collect()
        };
        let plain = Strategy::plain(&facts);
        let bits = train_plan(&Plan::with_strategy(graph.clone(), plain.clone()).unwrap(), card.cuda(), 2);
        for (dropped, forgotten) in [(1, 2), (2, 4)] {
            let order = cheap::order_forgetting(&graph, &facts, &values(dropped), &values(forgotten));
            let again = Plan::with_strategy(graph.clone(), Strategy { order, ..plain.clone() }).unwrap();
            assert_eq!(bits, card.backwards(|| train_plan(&again, Poisoned::new(card.cuda()), 2)));
        }
    }
    card.assert_started(&["batchnorm_again"]);
}

/// A weight of several tiles, the last of them smaller, by every optimizer. By our own products: those of cuBLAS may run
/// in another order where there are fewer rows.
#[test]
fn weights_updated_by_rows_are_the_same() {
    let card = Card::new();
    for index in 0..9 {
        let mut builder = GraphBuilder::new("Wide");
        let x = builder.input("x", DType::F32, &[300]).unwrap();
        let wide = builder.member("wide", Layer::Linear(Linear { out_features: 500, bias: true }), false);
        let head = builder.member("head", Layer::Linear(Linear { out_features: 3, bias: false }), false);
        let y = builder.call(wide, &[x]).and_then(|y| builder.call(head, &[y])).unwrap();
        let optimizer = common::optimizer(index);
        let training = Training { batch: 5, optimizer, loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
        let graph = builder.finish(y, Some(training), None, Budget::default()).unwrap();
        let facts = Facts::new(&graph, true);
        let [plain, thorough] = [Strategy::plain(&facts), Strategy::thorough(&graph, &facts)];
        if thorough.momentum_gradients {
            continue;
        }
        assert_eq!(thorough.row_tiles, [0, 1]);
        let [plain, tiled] = [plain, thorough].map(|strategy| {
            let plan = Plan::with_strategy(graph.clone(), strategy).unwrap();
            train_plan(&plan, card.cuda().without_cublas(), 2)
        });
        assert_eq!(plain, tiled, "optimizer {index}");
    }
}

/// Fails where numbers differ by more than the rounding of sums in another order.
fn assert_nearly(a: &[u32], b: &[u32]) {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().map(|bits| f32::from_bits(*bits).abs()).fold(1.0, f32::max);
    for (a, b) in a.iter().zip(b) {
        let [a, b] = [a, b].map(|bits| f32::from_bits(*bits));
        assert!((a - b).abs() <= 1e-5 * largest, "{a} and {b}");
    }
}

/// Convolutions whose weights have several tiles: of one group and of several, and the other way round.
#[test]
fn convolutions_updated_by_rows_are_the_same() {
    let card = Card::new();
    let window = Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1], dilation: [1, 1] };
    let conv = |out_channels, groups| Layer::Conv(Conv { axes: 2, out_channels, window, groups, bias: true });
    let transpose = ConvTranspose { out_channels: 130, window, output_padding: [0, 0], groups: 1, bias: true };
    let pointwise = Window { kernel: [1, 1], padding: [0, 0], ..window };
    let pointwise = Conv { axes: 2, out_channels: 600, window: pointwise, groups: 1, bias: false };
    let mut builder = GraphBuilder::new("Convolutions");
    let mut x = builder.input("x", DType::F32, &[120, 3, 4]).unwrap();
    for (name, layer) in [
        ("whole", conv(130, 1)),
        ("transposed", Layer::ConvTranspose(transpose)),
        ("halves", conv(200, 2)),
        ("pointwise", Layer::Conv(pointwise)),
    ] {
        let member = builder.member(name, layer, false);
        x = builder.call(member, &[x]).unwrap();
    }
    // Large enough that Adam makes nothing of rounding.
    let optimizer = Optimizer::Adam { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-3, weight_decay: 0.0 };
    let training = Training { batch: 3, optimizer, loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let graph = builder.finish(x, Some(training), None, Budget::default()).unwrap();
    let facts = Facts::new(&graph, true);
    let [plain, thorough] = [Strategy::plain(&facts), Strategy::thorough(&graph, &facts)];
    assert!(thorough.row_tiles.len() >= 3, "{:?}", thorough.row_tiles);
    let [plain, tiled] = [plain, thorough].map(|strategy| {
        let plan = Plan::with_strategy(graph.clone(), strategy).unwrap();
        train_plan(&plan, Poisoned::new(card.cuda()), 2)
    });
    assert_nearly(&plain, &tiled);
}

/// The loss by slices of the classes is the loss, also where targets are left out and smoothed.
#[test]
fn a_sliced_loss_is_the_loss() {
    let card = Card::new();
    for (features, classes, optimizer, ignore_index) in [(700, 200, 0, -100), (3, 1100, 8, 1), (700, 200, 2, -100)] {
        let mut builder = GraphBuilder::new("Head");
        let x = builder.input("x", DType::F32, &[features]).unwrap();
        let head = Layer::Linear(Linear { out_features: classes, bias: optimizer != 8 });
        let head = builder.member("head", head, false);
        let y = builder.call(head, &[x]).unwrap();
        let optimizer = match common::optimizer(optimizer) {
            Optimizer::Adam { lr, betas, weight_decay, .. } => Optimizer::Adam { lr, betas, eps: 1e-3, weight_decay },
            other => other,
        };
        let loss = Loss::CrossEntropy { label_smoothing: 0.1, ignore_index };
        let training = Training { batch: 5, optimizer, loss, accumulate: 1, clip_grad_norm: None };
        let graph = builder.finish(y, Some(training), None, Budget::default()).unwrap();
        let whole = Strategy::plain(&Facts::new(&graph, true));
        let whole = Plan::with_strategy(graph.clone(), whole).unwrap();
        let sliced = Facts::new(&graph, true).slicing_the_loss(&graph);
        let sliced = Plan::with_strategy(graph.clone(), Strategy::thorough(&graph, &sliced)).unwrap();
        let steps = &sliced.training.as_ref().unwrap().schedule.steps;
        assert!(steps.iter().any(|step| step.kind.is_loss() && step.kind != StepKind::Loss));
        let whole = train_plan(&whole, card.cuda(), 2);
        assert_nearly(&whole, &card.backwards(|| train_plan(&sliced, Poisoned::new(card.cuda()), 2)));
    }
    card.assert_started(&["sliced_gradient", "sliced_loss", "sliced_statistics"]);
}

#[test]
fn one_allocation_of_the_planned_bytes() {
    let card = Card::new();
    let (graph, plan) = (cnn(), cnn().plan().unwrap());
    let batch = Batch::new(&graph, 4, 0);
    let cuda = card.cuda();
    // cuBLAS has taken memory of its own, which is the context's share and no trainer's.
    let context = card.emulator().map(|emulator| emulator.accounting());
    let mut trainer = Trainer::from_plan(&plan, cuda, 42).unwrap();
    trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
    let report = trainer.memory_report();
    assert_eq!((report.planned, report.allocated), (plan.peak_bytes(), plan.peak_bytes()));
    let why = "in part: a real driver doesn't account for every call";
    let (Some(emulator), Some(context)) = (card.emulator_or_skip(why), context) else {
        // A real driver gives whole pages.
        assert!(report.given() >= report.planned || report.given() == 0, "{report}");
        return;
    };
    assert_eq!(report.given(), plan.peak_bytes(), "{report}");
    assert_eq!(report.context(), context.live_bytes, "{report}");
    let before = emulator.accounting();
    assert_eq!(before.allocations - context.allocations, 1);
    assert_eq!(before.live_bytes - context.live_bytes, plan.peak_bytes());
    for _ in 0..3 {
        trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
        trainer.predict(batch.slices().as_slice()).unwrap();
    }
    let after = emulator.accounting();
    assert_eq!(after.allocations - before.allocations, 0, "a step allocates nothing");
    assert_eq!((after.frees, after.pool_allocations, after.peak_bytes), (0, 0, before.live_bytes));
    drop(trainer);
    assert_eq!(emulator.accounting().live_bytes, 0);

    let predictor = Predictor::from_plan(&plan, card.cuda().without_cublas(), 42).unwrap();
    assert_eq!(emulator.accounting().live_bytes, plan.inference_bytes());
    drop(predictor);
    assert_eq!(emulator.accounting().live_bytes, 0);
}

/// The card is idle when a step begins, since the one before ended with a wait for its loss. Copies of inputs and targets
/// then wait for nothing but themselves, and the one wait for work is the read of the loss.
#[test]
fn a_step_waits_for_its_loss_alone() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real driver doesn't count the calls that wait") else { return };
    for graph in random_networks().take(12).chain([cnn()]) {
        let batch = Batch::new(&graph, graph.declared_batch(), 0);
        let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), card.cuda(), 42).unwrap();
        for _ in 0..4 {
            // The first one waits for the arena to be zeroed as well.
            trainer.predict(batch.slices().as_slice()).unwrap();
            let before = emulator.accounting();
            trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
            let after = emulator.accounting();
            let (inputs, targets, loss) = (graph.inputs.len() as u64, 1, 1);
            assert_eq!(after.waits - before.waits, inputs + targets + loss);
            assert_eq!(after.waits_for_work - before.waits_for_work, loss);
            trainer.predict(batch.slices().as_slice()).unwrap();
            let (before, after) = (after, emulator.accounting());
            assert_eq!(after.waits - before.waits, inputs + 1);
            assert_eq!(after.waits_for_work - before.waits_for_work, 1);
        }
    }
}

/// Every kernel of the step is taken by the driver; that the first one fails shows where the host waits.
#[test]
fn a_kernel_that_fails_is_told_when_the_loss_is_read() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real card's kernels can't be made to fail") else { return };
    card.expect_reports();
    let graph = cnn();
    let batch = Batch::new(&graph, 4, 0);
    for cublas in [true, false] {
        let cuda = if cublas { card.cuda() } else { card.cuda().without_cublas() };
        let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), cuda, 42).unwrap();
        trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
        let (started, reports) = (emulator.accounting().launches, emulator.reports().len());
        emulator.set_instruction_limit(1);
        let error = trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, Error::Device { .. }) && said.starts_with("CUDA device 0"), "{said}");
        assert!(said.contains("copying 4 bytes from the card, once the work before was done"), "{said}");
        assert!(said.contains("CUDA_ERROR_LAUNCH_TIMEOUT"), "{said}");
        assert!(emulator.accounting().launches - started > 20, "the step's kernels were not all started");
        assert_eq!(emulator.reports().len(), reports + 1, "{:?}", emulator.reports());
        // The context is of no more use, and says so each time.
        assert!(trainer.step(batch.slices().as_slice(), batch.targets(&graph)).is_err());
        assert!(trainer.parameter("head.bias").is_err());
        assert!(trainer.predict(batch.slices().as_slice()).is_err());
        drop(trainer);
        assert_eq!(emulator.accounting().live_bytes, 0);
        // The next context is a new one.
        emulator.set_instruction_limit(1 << 32);
        steps(&graph, card.cuda(), 1).unwrap();
        assert_eq!(emulator.accounting().live_bytes, 0);
    }
}

#[test]
fn a_byte_too_few_is_a_clean_error() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("the memory of a real card is not ours to set") else { return };
    let plan = cnn().plan().unwrap();
    let peak = plan.peak_bytes();
    emulator.set_memory(peak - 1);
    let error = Trainer::from_plan(&plan, card.cuda().without_cublas(), 42).err().unwrap();
    assert!(matches!(error, Error::LowMemory { bytes, free, .. } if bytes == peak && free == peak - 1), "{error}");
    for figure in [peak, peak - 1] {
        assert!(error.to_string().contains(&figure.to_string()), "{error}");
    }
    assert_eq!(emulator.accounting().live_bytes, 0);
    emulator.set_memory(peak);
    Trainer::from_plan(&plan, card.cuda().without_cublas(), 42).unwrap();
}

#[test]
fn without_a_card_the_best_device_is_the_cpu() {
    let card = Card::new();
    assert!(matches!(best().unwrap(), AnyDevice::Cuda(_)));
    let number = |ordinal| Cuda::new(ordinal).err().unwrap().to_string();
    assert!(number(99).contains("there is no card number 99"), "{}", number(99));
    let Some(emulator) = card.emulator_or_skip("in part: a real card can't be taken away") else { return };
    emulator.set_devices(0);
    assert!(matches!(Cuda::new(0), Err(Error::NoCuda { .. })));
    assert!(number(0).contains("Cpu::new()"), "{}", number(0));
    assert!(matches!(best().unwrap(), AnyDevice::Cpu(_)));
}

#[test]
fn an_old_driver_is_named() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real driver is as old as it is") else { return };
    emulator.set_driver_version(11080);
    let error = Cuda::new(0).err().unwrap().to_string();
    assert!(error.contains("11.8") && error.contains("12.1"), "{error}");
    // A card is there: to train on the CPU in its place must be asked for.
    assert!(matches!(best(), Err(Error::OldDriver { .. })));
}

#[test]
fn an_old_card_is_named() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real card is as old as it is") else { return };
    emulator.set_capability(72);
    let error = Cuda::new(0).err().unwrap();
    assert!(
        matches!(&error, Error::OldCard { capability, needed, .. } if capability == "7.2" && needed == "7.5"),
        "{error}"
    );
    let said = error.to_string();
    assert!(
        said.contains("CUDA device 0 (Plimsoll emulator)") && said.contains("7.2") && said.contains("7.5"),
        "{said}"
    );
    // It is there, so that the CPU must be asked for.
    assert!(matches!(best(), Err(Error::OldCard { .. })));
    emulator.set_capability(75);
    assert!(matches!(best().unwrap(), AnyDevice::Cuda(_)));
}

/// Lets one call fail after another, until a whole training survives. Every failure is an error that `says` what was being
/// done, and leaves nothing allocated.
fn every_failure(fail: impl Fn(&plimsoll_emulator::Session, u64), says: &[&str]) {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real driver can't be told to fail") else { return };
    card.expect_reports();
    let graph = cnn();
    let mut failures = 0;
    loop {
        fail(emulator, failures);
        let outcome = steps(&graph, card.cuda(), 1);
        assert_eq!(emulator.accounting().live_bytes, 0, "after failure {failures}");
        let Err(error) = outcome else { break };
        let error = error.to_string();
        assert!(error.starts_with("CUDA device 0"), "{error}");
        assert!(says.iter().any(|says| error.contains(says)), "failure {failures}: {error}");
        failures += 1;
    }
    assert!(failures > 0, "nothing failed");
    println!("{failures} failures, each an error");
}

#[test]
fn every_failed_copy_is_an_error() {
    every_failure(
        |emulator, after| emulator.fail_copy(after),
        &["copying", "zeroing the arena", "clearing memory: CUDA_ERROR"],
    );
}

#[test]
fn every_failed_launch_is_an_error() {
    let steps =
        ["the forward pass of", "the loss", "the backward pass of", "the update of", "the sum of the gradients"];
    every_failure(|emulator, after| emulator.fail_launch(after), &steps);
}

#[test]
fn a_failed_allocation_is_an_error() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real driver can't be told to fail") else { return };
    card.expect_reports();
    emulator.fail_allocation(0);
    let error = Trainer::from_plan(&cnn().plan().unwrap(), card.cuda(), 42).err().unwrap();
    assert!(matches!(error, Error::LowMemory { .. }), "{error}");
    assert_eq!(emulator.accounting().live_bytes, 0);
}

#[test]
fn a_lost_device_is_an_error_and_no_more() {
    let card = Card::new();
    let Some(emulator) = card.emulator_or_skip("a real card can't be lost at will") else { return };
    card.expect_reports();
    let graph = cnn();
    let batch = Batch::new(&graph, 4, 0);
    let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), card.cuda(), 42).unwrap();
    trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
    emulator.lose_device();
    for _ in 0..2 {
        let error = trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "{error}");
    }
    assert!(trainer.parameter("head.bias").is_err());
    drop(trainer);
    assert!(matches!(Cuda::new(0), Err(Error::Device { .. })));
}
