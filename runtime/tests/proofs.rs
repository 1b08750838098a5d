//! Runs that prove plans: with dead memory poisoned, with every buffer apart, and with other numbers of threads, training
//! gives the same bits.

mod common;

use common::{Batch, network, recipes, train, train_plan, train_tensors};
use plimsoll_plan::footprint::Footprint;
use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training, ValueId};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};
use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::layers::concat::Concat;
use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::layers::conv_transpose::ConvTranspose;
use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::layers::scale::Scale;
use plimsoll_plan::layers::view::View;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::lower::Facts;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::schedule::StepKind;
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::{Strategy, cheap, row_tiles};
use plimsoll_runtime::proof::{Apart, Poisoned};
use plimsoll_runtime::{Cpu, Device, Error, Program, Trainer};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { std::env::var("CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(200) }, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_runs_agree(recipe in recipes(false)) {
        let graph = network(&recipe);
        let alone = || Cpu::with_threads(1).unwrap();
        let bits = train(&graph, alone(), 4);
        prop_assert_eq!(&bits, &train(&graph, Poisoned::new(alone()), 4), "with poison");
        prop_assert_eq!(&bits, &train(&graph, Apart::new(alone()), 4), "apart");
        prop_assert_eq!(&bits, &train(&graph, Cpu::with_threads(3).unwrap(), 4), "with three threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..Default::default() })]

    /// What a step may use beside its buffers is the largest piece that holds nothing: counted here block by block.
    #[test]
    fn spare_memory_is_what_no_buffer_has(recipe in recipes(false)) {
        const BLOCK: u64 = 256;
        let plan = network(&recipe).plan().unwrap();
        // What a trainer keeps from step to step, whatever it runs.
        let kept = plan.training.as_ref().unwrap().placement.persistent_bytes;
        let programs = [Program::training(&plan).unwrap(), Program::evaluation(&plan)];
        for program in programs {
            for (step, instruction) in program.instructions.iter().enumerate() {
                let mut taken = vec![false; plan.peak_bytes().div_ceil(BLOCK) as usize];
                taken[..(kept / BLOCK) as usize].fill(true);
                for (buffer, region) in program.schedule.buffers.iter().zip(&program.regions) {
                    if buffer.lower as usize <= step && step < buffer.upper as usize {
                        let end = region.offset + region.bytes(program.batch) as u64;
                        taken[(region.offset / BLOCK) as usize..end.div_ceil(BLOCK) as usize].fill(true);
                    }
                }
                let spare = &instruction.spare;
                prop_assert!(spare.start.is_multiple_of(BLOCK) && spare.end <= plan.peak_bytes(), "{spare:?}");
                let blocks = (spare.start / BLOCK) as usize..spare.end.div_ceil(BLOCK) as usize;
                prop_assert!(taken[blocks.clone()].iter().all(|taken| !taken), "step {step}: {spare:?}");
                // The arena may end above what this program uses, for the sake of another.
                let used = program.regions.iter().map(|region| region.offset + region.bytes(program.batch) as u64).max();
                let below = &taken[..used.unwrap_or(0).div_ceil(BLOCK) as usize];
                let largest = below.split(|taken| *taken).map(<[bool]>::len).max().unwrap_or(0);
                prop_assert!(blocks.len() >= largest, "step {step}: {spare:?}, but there are {largest} blocks");
            }
        }
    }
}

/// The plan that saves nothing, and the one that saves whatever can be saved.
fn plain_and_thorough(graph: &Graph) -> [Plan; 2] {
    let facts = Facts::new(graph, true);
    let in_place = facts.clone().with_concats_in_place(graph);
    [Strategy::plain(&facts), Strategy::thorough(graph, &in_place)]
        .map(|strategy| Plan::with_strategy(graph.clone(), strategy).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..Default::default() })]

    /// What is computed again comes out the same. Gradients that are added to a momentum are for the next test.
    #[test]
    fn savings_change_nothing(recipe in recipes(false)) {
        let graph = network(&recipe);
        let alone = || Cpu::with_threads(1).unwrap();
        let [plain, thorough] = plain_and_thorough(&graph);
        let saved = train_plan(&thorough, Poisoned::new(alone()), 4);
        if !thorough.training.as_ref().unwrap().strategy.momentum_gradients {
            prop_assert_eq!(&saved, &train_plan(&plain, alone(), 4));
        }
        prop_assert_eq!(&saved, &train_plan(&thorough, Apart::new(alone()), 4), "apart");
    }

    /// A gradient that is added to the momentum is a sum in another order, and nothing else: losses, parameters and what the
    /// network gives after one step agree to some units in the last place. What it gives after two steps, by parameters that
    /// differ so much, are sums that may be small beside their terms.
    #[test]
    fn gradients_in_the_momentum_change_the_order_of_sums(recipe in recipes(false)) {
        let graph = network(&common::Recipe { optimizer: common::PLAIN_MOMENTUM, clip: false, ..recipe });
        let alone = || Cpu::with_threads(1).unwrap();
        let [plain, thorough] = plain_and_thorough(&graph);
        prop_assert!(thorough.training.as_ref().unwrap().strategy.momentum_gradients);
        let [kept, added] = [&plain, &thorough].map(|plan| train_tensors(plan, alone(), 2));
        for (kept, added) in kept.iter().zip(&added) {
            let (part, name) = difference(std::slice::from_ref(kept), std::slice::from_ref(added));
            let most = if name == "output 1" { 1e-5 } else { 1e-6 };
            prop_assert!(part <= most, "`{name}` differs by {part} of its largest value");
        }
        let saved = train_plan(&thorough, Poisoned::new(alone()), 4);
        prop_assert_eq!(&saved, &train_plan(&thorough, Apart::new(alone()), 4), "apart");
    }
}

/// The largest difference between two runs, as a part of the largest value of its tensor, and the tensor's name.
///
/// The values of a parameter are its first ones and what was added: the learning rate times gradients. Where a gradient is
/// zero but for rounding, as of a bias before a normalization, so may be the values, of terms that were not: they count as
/// the learning rate at least.
fn difference(kept: &[(String, Vec<f32>)], saved: &[(String, Vec<f32>)]) -> (f32, String) {
    const LEARNING_RATE: f32 = 0.05;
    assert_eq!(kept.len(), saved.len());
    let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(0f32, |largest, x| largest.max(x.abs()));
    let parts = kept.iter().zip(saved).map(|((name, kept), (other, saved))| {
        assert_eq!((name, kept.len()), (other, saved.len()));
        let difference = largest(&mut kept.iter().zip(saved).map(|(a, b)| a - b));
        let least = if name.contains(' ') { f32::MIN_POSITIVE } else { LEARNING_RATE };
        (difference / largest(&mut kept.iter().copied()).max(least), name.clone())
    });
    parts.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 200 }, failure_persistence: None, ..Default::default() })]

    /// Products, dropout and batch normalization that run again give the same bits, and running statistics move once.
    #[test]
    fn recomputation_changes_nothing(recipe in recipes(false), dropped in any::<u64>(), forgotten in any::<u64>()) {
        let graph = network(&recipe);
        let facts = Facts::new(&graph, true);
        let saved = cheap::saved(&graph, &facts);
        let chosen = |bits: u64| -> Vec<ValueId> {
            let values = (graph.inputs.len() as u32..graph.types.len() as u32).map(ValueId);
            values.filter(|value| saved[value.index()] && bits >> (value.0 % 64) & 1 == 1).collect()
        };
        let plain = Strategy::plain(&facts);
        let order = cheap::order_forgetting(&graph, &facts, &chosen(dropped), &chosen(dropped & forgotten));
        let again = Strategy { order, ..plain.clone() };
        let [plain, again] =
            [plain, again].map(|strategy| Plan::with_strategy(graph.clone(), strategy).unwrap());
        let alone = || Cpu::with_threads(1).unwrap();
        let bits = train_plan(&plain, alone(), 4);
        prop_assert_eq!(&bits, &train_plan(&again, Poisoned::new(alone()), 4));
        prop_assert_eq!(&bits, &train_plan(&again, Apart::new(alone()), 4), "apart");
    }
}

/// Convolutions whose weights have several tiles of rows, one of them across groups.
#[test]
#[cfg_attr(miri, ignore)]
fn convolutions_by_rows_change_nothing() {
    let window = Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1], dilation: [1, 1] };
    let conv = |out_channels, groups| Layer::Conv(Conv { axes: 2, out_channels, window, groups, bias: true });
    let transpose = ConvTranspose { out_channels: 130, window, output_padding: [0, 0], groups: 1, bias: true };
    let mut builder = GraphBuilder::new("Convolutions");
    let mut x = builder.input("x", DType::F32, &[120, 3, 4]).unwrap();
    for (name, layer) in [
        ("whole", conv(130, 1)),
        ("transposed", Layer::ConvTranspose(transpose)),
        ("grouped", conv(200, 1)),
        ("halves", conv(150, 2)),
    ] {
        let member = builder.member(name, layer, false);
        x = builder.call(member, &[x]).unwrap();
    }
    let training =
        Training { batch: 3, optimizer: common::optimizer(2), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let graph = builder.finish(x, Some(training), None, Budget::default()).unwrap();
    let [plain, thorough] = plain_and_thorough(&graph);
    assert_eq!(thorough.training.as_ref().unwrap().strategy.row_tiles.len(), 4);
    let rows = |node: usize| {
        let n = &graph.nodes[node];
        row_tiles::tile_rows(&n.layer, &graph.parameters[n.parameters[0].index()])
    };
    assert_eq!([0, 1, 2, 3].map(rows), [64, 64, 64, 72]);
    let device = || Cpu::with_threads(2).unwrap();
    assert_eq!(train_plan(&plain, device(), 3), train_plan(&thorough, Poisoned::new(device()), 3));
}

/// Layers with enough channels for Winograd's algorithm, and each that an activation in place is done with: at once with its
/// layer, by itself (where memory is poisoned between steps), with every buffer apart and with other numbers of threads, the
/// bits are the same. So they are where a concat's parts are convolved as they lie.
#[test]
#[cfg_attr(miri, ignore)]
fn activations_change_nothing_by_being_done_at_once() {
    let window =
        |kernel: u64| Window { kernel: [kernel; 2], stride: [1, 1], padding: [kernel / 2; 2], dilation: [1, 1] };
    let conv = |out_channels, kernel, groups| {
        Layer::Conv(Conv { axes: 2, out_channels, window: window(kernel), groups, bias: true })
    };
    let norm = || Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-5, momentum: 0.1, affine: true });
    let (relu, relu6) = (|| Layer::Activation(Activation::Relu), || Layer::Activation(Activation::Relu6));
    let mut builder = GraphBuilder::new("Activations");
    let x = builder.input("x", DType::F32, &[3, 9, 10]).unwrap();
    let mut count = 0;
    let mut call = |layer: Layer, inputs: &[ValueId]| {
        count += 1;
        let member = builder.member(&format!("layer{count}"), layer, false);
        builder.call(member, inputs).unwrap()
    };
    // Few maps, each a group, many, and one tap.
    let mut y = x;
    for (layer, activation) in [
        (conv(6, 5, 1), relu()),
        (conv(6, 3, 6), relu6()),
        (conv(40, 3, 1), relu()),
        (conv(50, 3, 1), relu6()),
        (norm(), relu()),
        (conv(40, 1, 1), relu6()),
        (Layer::Affine(Affine { mul: 3.0, add: 0.5 }), relu6()),
    ] {
        y = call(layer, &[y]);
        y = call(activation, &[y]);
    }
    let side = call(conv(40, 3, 1), &[y]);
    let sum = call(Layer::Arithmetic(Arithmetic::Add), &[y, side]);
    let sum = call(relu(), &[sum]);
    let both = call(Layer::Concat(Concat { axis: 0 }), &[sum, side]);
    let both = call(conv(33, 3, 1), &[both]);
    let both = call(norm(), &[both]);
    let both = call(relu(), &[both]);
    let flat = call(Layer::View(View::Flatten { start_axis: 0 }), &[both]);
    let y = call(Layer::Linear(Linear { out_features: 3, bias: true }), &[flat]);
    let training =
        Training { batch: 2, optimizer: common::optimizer(0), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let graph = builder.finish(y, Some(training), None, Budget::default()).unwrap();
    let alone = || Cpu::with_threads(1).unwrap();
    let [plain, thorough] = plain_and_thorough(&graph);
    let bits = train_plan(&plain, alone(), 4);
    for (name, plan) in [("plain", &plain), ("with savings", &thorough)] {
        assert_eq!(bits, train_plan(plan, Cpu::with_threads(3).unwrap(), 4), "{name}, three threads");
        assert_eq!(bits, train_plan(plan, Poisoned::new(alone()), 4), "{name}, with poison");
        assert_eq!(bits, train_plan(plan, Apart::new(alone()), 4), "{name}, apart");
    }
}

/// Kernels keep more than a mebibyte on their stack, which is never the caller's.
#[test]
#[cfg_attr(miri, ignore)]
fn the_stack_of_the_caller_may_be_small() {
    let window = Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1], dilation: [1, 1] };
    let conv = Layer::Conv(Conv { axes: 2, out_channels: 40, window, groups: 1, bias: true });
    let mut builder = GraphBuilder::new("Stack");
    let x = builder.input("x", DType::F32, &[40, 8, 8]).unwrap();
    let member = builder.member("conv", conv, false);
    let y = builder.call(member, &[x]).unwrap();
    let training =
        Training { batch: 2, optimizer: common::optimizer(0), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let plan = builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap();
    for threads in [1, 2] {
        let plan = plan.clone();
        let caller = std::thread::Builder::new().stack_size(256 << 10);
        let caller = caller.spawn(move || train_plan(&plan, Cpu::with_threads(threads).unwrap(), 2));
        assert!(!caller.unwrap().join().unwrap().is_empty());
    }
}

/// One small network with layers whose kernels are not safe code by themselves: convolutions, batch norm with an activation in
/// place, and a linear layer. It is small enough for an interpreter.
#[test]
fn a_small_network_agrees() {
    let conv = |groups| {
        let window = Window { kernel: [3; 2], stride: [1; 2], padding: [1; 2], dilation: [1; 2] };
        Layer::Conv(Conv { axes: 2, out_channels: 2, window, groups, bias: true })
    };
    let window = Window { kernel: [2; 2], stride: [2; 2], padding: [0; 2], dilation: [1; 2] };
    let up = ConvTranspose { out_channels: 2, window, output_padding: [0; 2], groups: 1, bias: true };
    let mut builder = GraphBuilder::new("Small");
    let mut x = builder.input("x", DType::F32, &[1, 1, 4]).unwrap();
    for (name, layer) in [
        ("up", Layer::ConvTranspose(up)),
        ("conv", conv(1)),
        ("norm", Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-5, momentum: 0.1, affine: true })),
        ("relu", Layer::Activation(Activation::Relu)),
        ("each", conv(2)),
        ("flat", Layer::View(View::Flatten { start_axis: 0 })),
        ("head", Layer::Linear(Linear { out_features: 2, bias: true })),
    ] {
        let member = builder.member(name, layer, false);
        x = builder.call(member, &[x]).unwrap();
    }
    let training =
        Training { batch: 2, optimizer: common::optimizer(1), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let plan = builder.finish(x, Some(training), None, Budget::default()).unwrap().plan().unwrap();
    let alone = || Cpu::with_threads(1).unwrap();
    let bits = train_plan(&plan, alone(), 2);
    // An interpreter sees by itself what is read or written out of place.
    if cfg!(not(miri)) {
        assert_eq!(bits, train_plan(&plan, Apart::new(alone()), 2), "apart");
        assert_eq!(bits, train_plan(&plan, Poisoned::new(alone()), 2), "with poison");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..Default::default() })]

    /// Where there are many channels, all ways of running a network give the same bits, whatever is saved.
    #[test]
    #[cfg_attr(miri, ignore)]
    fn many_channels_change_nothing(recipe in recipes(false), threads in 2..6usize) {
        let graph = common::wide(&recipe);
        let alone = || Cpu::with_threads(1).unwrap();
        let [plain, thorough] = plain_and_thorough(&graph);
        let bits = train_plan(&plain, alone(), 3);
        prop_assert_eq!(&bits, &train_plan(&plain, Cpu::with_threads(threads).unwrap(), 3), "with more threads");
        prop_assert_eq!(&bits, &train_plan(&plain, Apart::new(alone()), 3), "apart");
        let saved = train_plan(&thorough, Cpu::with_threads(threads).unwrap(), 3);
        prop_assert_eq!(&saved, &train_plan(&thorough, Poisoned::new(alone()), 3), "with poison");
        if !thorough.training.as_ref().unwrap().strategy.momentum_gradients {
            prop_assert_eq!(&bits, &saved, "with savings");
        }
    }
}

/// A network that ends with many classes.
#[derive(Clone, Debug)]
struct Head {
    /// With 3 features, a slice has 512 classes; with 700, 93; with 5,000, 32.
    features: u64,
    classes: u64,
    batch: u64,
    bias: bool,
    frozen: bool,
    /// Whether the last layer shares the weight of another, which comes before.
    tied: bool,
    /// Whether anything before the last layer is trained.
    trains_input: bool,
    smoothing: f64,
    ignore_index: i32,
    optimizer: usize,
    accumulate: u64,
    clip: bool,
}

fn heads() -> impl proptest::strategy::Strategy<Value = Head> {
    use proptest::strategy::Strategy;
    let sizes = (0..3usize, 2..130u64, 1..12u64, 0..3usize);
    let flags = (any::<bool>(), 0..4u8, any::<bool>(), any::<bool>(), any::<bool>());
    (sizes, flags, any::<bool>(), any::<bool>(), 1..3u64).prop_map(
        |((size, classes, batch, optimizer), (bias, kind, trains_input, smooth, ignores), clip, few, accumulate)| {
            Head {
                features: [3, 700, 5000][size],
                classes: if few { classes } else { classes * [12, 3, 1][size] },
                batch,
                bias,
                frozen: kind == 0,
                tied: kind == 1,
                trains_input: trains_input || kind == 0,
                smoothing: if smooth { 0.1 } else { 0.0 },
                ignore_index: if ignores { 1 } else { -100 },
                // SGD by itself, with Nesterov's momentum, with plain momentum.
                optimizer: [0, 1, 8][optimizer],
                accumulate,
                clip,
            }
        },
    )
}

fn ending_with(head: &Head) -> Graph {
    let mut builder = GraphBuilder::new("Head");
    let mut x = builder.input("x", DType::F32, &[head.features]).unwrap();
    if head.trains_input {
        let scale = builder.member("scale", Layer::Scale(Scale { init: 1.0 }), false);
        x = builder.call(scale, &[x]).unwrap();
    }
    let linear = |out_features, bias| Layer::Linear(Linear { out_features, bias });
    let member = builder.member("head", linear(head.classes, head.bias), head.frozen);
    let logits = if head.tied {
        // To the classes and back by the same weight, then to the classes once more.
        let there = builder.call(member, &[x]).unwrap();
        let back = builder.member("back", linear(head.features, false), true);
        let back = builder.call(back, &[there]).unwrap();
        let tied = builder.tied("tied", member);
        builder.call(tied, &[back]).unwrap()
    } else {
        builder.call(member, &[x]).unwrap()
    };
    let training = Training {
        batch: head.batch,
        optimizer: common::optimizer(head.optimizer),
        loss: Loss::CrossEntropy { label_smoothing: head.smoothing, ignore_index: head.ignore_index },
        accumulate: head.accumulate,
        clip_grad_norm: head.clip.then_some(0.5),
    };
    builder.finish(logits, Some(training), None, Budget::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 100 }, failure_persistence: None, ..Default::default() })]

    /// A loss by slices adds up in another order, and is the same but for that.
    #[test]
    fn a_sliced_loss_is_the_loss(head in heads()) {
        let graph = ending_with(&head);
        let whole = Facts::new(&graph, true);
        let whole = Plan::with_strategy(graph.clone(), Strategy::plain(&whole)).unwrap();
        let sliced = Facts::new(&graph, true).slicing_the_loss(&graph);
        let sliced = Plan::with_strategy(graph.clone(), Strategy::thorough(&graph, &sliced)).unwrap();
        let steps = &sliced.training.as_ref().unwrap().schedule.steps;
        let is_sliced = steps.iter().any(|step| matches!(step.kind, StepKind::SlicedLoss { .. }));
        prop_assert!(is_sliced);
        let alone = || Cpu::with_threads(1).unwrap();
        // What one step makes of the same weights: the loss, and the parameters.
        let step = [&whole, &sliced].map(|plan| {
            let mut tensors = train_tensors(plan, alone(), 1);
            tensors.retain(|(name, _)| !name.starts_with("output"));
            tensors
        });
        let (part, name) = difference(&step[0], &step[1]);
        prop_assert!(part <= 1e-6, "after a step, `{name}` differs by {part} of its largest value");
        // From then on the weights are others by that, and an output is the sum of as many as 5,000 of them.
        let steps = [&whole, &sliced].map(|plan| train_tensors(plan, alone(), 2));
        let (part, name) = difference(&steps[0], &steps[1]);
        prop_assert!(part <= 1e-5, "after two steps, `{name}` differs by {part} of its largest value");
        let saved = train_plan(&sliced, Poisoned::new(alone()), 4);
        prop_assert_eq!(&saved, &train_plan(&sliced, Apart::new(alone()), 4), "apart");
        prop_assert_eq!(&saved, &train_plan(&sliced, Cpu::with_threads(3).unwrap(), 4), "with three threads");
    }
}

/// A weight of several tiles, the last of them smaller, by every optimizer; at a small batch and at larger ones, for each of
/// which the CPU has a way of its own.
#[test]
fn weights_updated_by_rows_are_the_same() {
    for (index, batch) in (0..9).map(|index| (index, 5)).chain([(2, 40), (2, 300)]) {
        let mut builder = GraphBuilder::new("Wide");
        let x = builder.input("x", DType::F32, &[300]).unwrap();
        let wide = builder.member("wide", Layer::Linear(Linear { out_features: 500, bias: true }), false);
        let head = builder.member("head", Layer::Linear(Linear { out_features: 3, bias: false }), false);
        let y = builder.call(wide, &[x]).and_then(|y| builder.call(head, &[y])).unwrap();
        let optimizer = common::optimizer(index);
        let training = Training { batch, optimizer, loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
        let graph = builder.finish(y, Some(training), None, Budget::default()).unwrap();
        let [plain, thorough] = plain_and_thorough(&graph);
        let strategy = &thorough.training.as_ref().unwrap().strategy;
        if strategy.momentum_gradients {
            continue;
        }
        assert_eq!(strategy.row_tiles, [0, 1]);
        let workspace = Footprint::new(&thorough).workspace_bytes;
        assert!(workspace < 500 * 300 * 4 && workspace.is_multiple_of(300 * 4), "{workspace}");
        let device = || Cpu::with_threads(2).unwrap();
        assert_eq!(
            train_plan(&plain, device(), 4),
            train_plan(&thorough, Poisoned::new(device()), 4),
            "{index} {batch}"
        );
    }
}

/// One linear layer, whose weight's gradient needs the batch again.
fn keeping() -> Plan {
    let mut builder = GraphBuilder::new("Linear");
    let x = builder.input("x", DType::F32, &[4]).unwrap();
    let head = builder.member("head", Layer::Linear(Linear { out_features: 3, bias: true }), false);
    let y = builder.call(head, &[x]).unwrap();
    let training =
        Training { batch: 2, optimizer: common::optimizer(0), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    builder.finish(y, Some(training), None, Budget::default()).unwrap().plan().unwrap()
}

/// A plan that is wrong about a lifespan must not survive the poison: here, inputs that are said to be dead after the
/// forward pass, though the weight's gradient needs them.
#[test]
fn poison_finds_what_is_read_after_its_death() {
    let mut plan = keeping();
    let graph = plan.graph.clone();
    let batch = Batch::new(&graph, 2, 0);
    let weights = |plan: &Plan| {
        let mut trainer = Trainer::from_plan(plan, Poisoned::new(Cpu::with_threads(1).unwrap()), 7).unwrap();
        trainer.step(batch.slices().as_slice(), batch.targets(&graph)).unwrap();
        trainer.parameter("head.weight").unwrap()
    };
    assert!(weights(&plan).iter().all(|w| w.is_finite()));
    let schedule = &mut plan.training.as_mut().unwrap().schedule;
    let loss = schedule.steps.iter().position(|step| step.kind == StepKind::Loss).unwrap() as u32;
    let input = *schedule.inputs.last().unwrap();
    schedule.buffers[input.index()].upper = loss;
    assert!(weights(&plan).iter().any(|w| w.is_nan()));
}

/// A device that looks past the end of the targets.
struct Careless {
    cpu: Cpu,
    /// Whether it writes there, one byte, or reads: a float, which it adds to the loss.
    writes: bool,
}

impl Device for Careless {
    type Arena = <Cpu as Device>::Arena;
    type Prepared = <Cpu as Device>::Prepared;

    fn name(&self) -> String {
        "a careless device".to_string()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Self::Arena, Error> {
        self.cpu.allocate(bytes)
    }

    fn prepare(&mut self, program: plimsoll_runtime::Program) -> Result<Self::Prepared, Error> {
        self.cpu.prepare(program)
    }

    fn upload(&mut self, arena: &mut Self::Arena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.cpu.upload(arena, offset, bytes)
    }

    fn download(&mut self, arena: &Self::Arena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.cpu.download(arena, offset, bytes)
    }

    fn run(
        &mut self,
        program: &mut Self::Prepared,
        arena: &mut Self::Arena,
        steps: std::ops::Range<usize>,
        arguments: &plimsoll_runtime::Arguments,
    ) -> Result<(), Error> {
        let planned = program.as_ref();
        let [target, loss] =
            [planned.schedule.target, planned.schedule.loss].map(|buffer| planned.region(buffer.unwrap()));
        let end = target.offset + target.bytes(arguments.batch) as u64;
        self.cpu.run(program, arena, steps, arguments)?;
        if self.writes {
            return self.cpu.upload(arena, end, &[0]);
        }
        let mut float = |offset| -> Result<f32, Error> {
            let mut bytes = [0; 4];
            self.cpu.download(arena, offset, &mut bytes)?;
            Ok(f32::from_le_bytes(bytes))
        };
        let sum = float(loss.offset)? + float(end)?;
        self.cpu.upload(arena, loss.offset, &sum.to_le_bytes())
    }
}

#[test]
fn guards_find_what_is_written_and_what_is_read_outside() {
    let plan = keeping();
    let batch = Batch::new(&plan.graph, 2, 0);
    for (writes, expected) in [(true, "wrote outside of its buffers"), (false, "the loss of step 1 is NaN")] {
        let device = Apart::new(Careless { cpu: Cpu::with_threads(1).unwrap(), writes });
        let mut trainer = Trainer::from_plan(&plan, device, 7).unwrap();
        let error = trainer.step(batch.slices().as_slice(), batch.targets(&plan.graph)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
