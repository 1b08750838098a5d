//! Checkpoints: a run that goes on as if it had never stopped, files that were damaged or are of another network, PyTorch's
//! files, and a process that is killed while it saves.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::layers::view::View;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::shape::DType;
use plimsoll_plan::strategy::Saving;
use plimsoll_runtime::checkpoint::{self, Difference};
use plimsoll_runtime::learning_rate::Cosine;
use plimsoll_runtime::philox::{Purpose, Stream};
use plimsoll_runtime::{Cpu, Error, Predictor, Trainer};
use proptest::prelude::*;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

const BATCH: u64 = 4;

/// The network of `scripts/torch_checkpoint.py`, with dropout.
fn network(optimizer: Optimizer, accumulate: u64) -> Graph {
    network_with(optimizer, accumulate, Some(1.0))
}

fn network_with(optimizer: Optimizer, accumulate: u64, clip_grad_norm: Option<f64>) -> Graph {
    let mut builder = GraphBuilder::new("Net");
    let mut x = builder.input("x", DType::F32, &[1, 6, 6]).unwrap();
    let window = Window { kernel: [3, 3], stride: [1, 1], padding: [0, 0], dilation: [1, 1] };
    let layers = [
        ("conv", Layer::Conv(Conv { axes: 2, out_channels: 3, window, groups: 1, bias: true })),
        ("norm", Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-5, momentum: 0.1, affine: true })),
        ("", Layer::Activation(Activation::Relu)),
        ("", Layer::View(View::Flatten { start_axis: 0 })),
        ("", Layer::Dropout(Dropout { p: 0.4 })),
        ("fc", Layer::Linear(Linear { out_features: 5, bias: true })),
    ];
    for (name, layer) in layers {
        let member = builder.member(name, layer, false);
        x = builder.call(member, &[x]).unwrap();
    }
    let loss = Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: -100 };
    let training = Training { batch: BATCH, optimizer, loss, accumulate, clip_grad_norm };
    builder.finish(x, Some(training), None, Budget::default()).unwrap()
}

/// Plain momentum, whose plan adds the gradients to it where no norm is clipped.
fn momentum() -> Optimizer {
    Optimizer::Sgd { lr: 0.01, momentum: 0.9, dampening: 0.0, weight_decay: 1e-3, nesterov: false }
}

fn adds_to_momentum(graph: &Graph) -> bool {
    graph.plan().unwrap().training.unwrap().strategy.momentum_gradients
}

fn adam() -> Optimizer {
    Optimizer::by_name("adam").unwrap()
}

fn trainer(graph: &Graph, seed: u64) -> Trainer<(), Cpu> {
    Trainer::from_plan(&graph.plan().unwrap(), Cpu::with_threads(1).unwrap(), seed).unwrap()
}

fn batch(number: u64) -> (Vec<f32>, Vec<i32>) {
    let stream = Stream::new(99, Purpose::Shuffle, 0, number);
    let inputs: Vec<f32> = (0..BATCH * 9).flat_map(|block| stream.normal(block)).collect();
    (inputs, (0..BATCH as i32).map(|i| (i + number as i32) % 5).collect())
}

/// Trains on the batches of these numbers; the bits of their losses.
fn train(trainer: &mut Trainer<(), Cpu>, batches: std::ops::Range<u64>) -> Vec<u32> {
    let step = |number| {
        let (inputs, targets) = batch(number);
        trainer.step(&inputs, &targets).unwrap().to_bits()
    };
    batches.map(step).collect()
}

/// The bits of all parameters.
fn bits(trainer: &mut Trainer<(), Cpu>) -> Vec<u32> {
    let names: Vec<String> = trainer.graph().parameters.iter().map(|parameter| parameter.path.clone()).collect();
    names.iter().flat_map(|name| trainer.parameter(name).unwrap()).map(f32::to_bits).collect()
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    (folder, path)
}

fn checkpoint_error(result: Result<(), Error>) -> checkpoint::Error {
    match result {
        Err(Error::Checkpoint(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resumed_run_is_the_run_that_never_stopped() {
    let (_folder, path) = file();
    let schedule = Cosine { lr: 0.01, eta_min: 0.0, updates: 8 };
    let centered =
        Optimizer::RmsProp { lr: 0.01, alpha: 0.9, eps: 1e-8, weight_decay: 1e-2, momentum: 0.9, centered: true };
    let named =
        ["adam", "adagrad", "lion", "rmsprop", "sgd"].map(|name| (Optimizer::by_name(name).unwrap(), Some(1.0)));
    let others = [(centered, Some(1.0)), (momentum(), Some(1.0)), (momentum(), None)];
    for (optimizer, clip) in named.into_iter().chain(others) {
        // Saved between two updates as well as right after one.
        for (accumulate, stop) in [(1, 5), (2, 5), (2, 6), (3, 4)] {
            let graph = network_with(optimizer.clone(), accumulate, clip);
            assert_eq!(adds_to_momentum(&graph), optimizer == momentum() && clip.is_none());
            let mut whole = trainer(&graph, 42);
            whole.set_schedule(schedule);
            train(&mut whole, 0..stop);
            whole.save(&path).unwrap();
            let losses = train(&mut whole, stop..12);

            // Another seed, and gradients of its own that must not count.
            let mut resumed = trainer(&graph, 7);
            train(&mut resumed, 0..1);
            resumed.set_schedule(schedule);
            resumed.load(&path).unwrap();
            assert_eq!((resumed.batches(), resumed.updates()), (stop, stop / accumulate));
            let case = format!("{optimizer:?}, {clip:?}, {accumulate}, {stop}");
            assert_eq!(train(&mut resumed, stop..12), losses, "{case}");
            assert_eq!(bits(&mut resumed), bits(&mut whole), "{case}");
            assert_eq!(resumed.learning_rate(), whole.learning_rate());
        }
    }
}

/// The momentum goes from a plan that adds gradients to it to one that does not, and back: to the last bit or so, since it is
/// multiplied by its factor and divided again. Between two updates it can't.
#[test]
fn momentum_goes_from_plan_to_plan() {
    let (_folder, path) = file();
    for (accumulate, stop) in [(1, 5), (2, 6), (3, 3)] {
        let added = network_with(momentum(), accumulate, None);
        let apart = added.clone().without(&[Saving::MomentumGradients]);
        assert_eq!([&added, &apart].map(adds_to_momentum), [true, false]);
        for [from, to] in [[&added, &apart], [&apart, &added]] {
            let mut whole = trainer(from, 42);
            train(&mut whole, 0..stop);
            whole.save(&path).unwrap();
            let mut resumed = trainer(to, 7);
            resumed.load(&path).unwrap();
            assert_eq!(bits(&mut resumed), bits(&mut whole), "the weights are the same");
            // The momentum itself is what it was: file by file, tensor by tensor.
            let saved = momenta(&path);
            resumed.save(&path).unwrap();
            for ((name, a), (other, b)) in saved.iter().zip(momenta(&path)) {
                assert_eq!(*name, other);
                assert!(a.iter().any(|value| *value != 0.0), "{name} is there");
                for (a, b) in a.iter().zip(b) {
                    assert!((a - b).abs() <= 2.0 * f32::EPSILON * a.abs(), "{name}: {a} and {b}");
                }
            }
            // And training goes on with the same values, up to the order of sums.
            let [losses, again] = [train(&mut whole, stop..12), train(&mut resumed, stop..12)];
            close(&losses, &again);
            close(&bits(&mut whole), &bits(&mut resumed));
        }
        if accumulate > 1 {
            let mut whole = trainer(&added, 42);
            train(&mut whole, 0..stop + 1);
            whole.save(&path).unwrap();
            let error = checkpoint_error(trainer(&apart, 7).load(&path)).to_string();
            assert!(error.contains("saved between two updates by a network with other savings"), "{error}");
        }
    }
}

/// The momentum in a file by parameter, whichever way it was saved.
fn momenta(path: &Path) -> Vec<(String, Vec<f32>)> {
    let bytes = fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut momenta = Vec::new();
    for (name, tensor) in tensors.iter() {
        let values = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        if let Some(path) = name.strip_prefix("plimsoll/optimizer/momentum_buffer/") {
            momenta.push((path.to_string(), values.collect()));
        } else if let Some(path) = name.strip_prefix("plimsoll/optimizer/decayed_momentum_buffer/") {
            momenta.push((path.to_string(), values.map(|value| value / 0.9).collect()));
        }
    }
    assert_eq!(momenta.len(), 6, "a momentum for each parameter");
    momenta.sort_by(|a, b| a.0.cmp(&b.0));
    momenta
}

/// Whether floats, by their bits, are the same to 1e-6 of the largest.
fn close(a: &[u32], b: &[u32]) {
    let [a, b] = [a, b].map(|bits| bits.iter().map(|bits| f32::from_bits(*bits)).collect::<Vec<_>>());
    let largest = a.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    let difference = a.iter().zip(&b).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
    assert!(a.len() == b.len() && difference <= 1e-6 * largest, "{difference} of {largest}");
}

#[test]
fn a_learning_rate_that_was_set_by_hand_is_kept() {
    let (_folder, path) = file();
    let graph = network(adam(), 1);
    let mut a = trainer(&graph, 42);
    a.set_learning_rate(0.1 / 3.0).unwrap();
    a.save(&path).unwrap();
    let mut b = trainer(&graph, 1);
    b.load(&path).unwrap();
    assert_eq!(b.learning_rate(), 0.1 / 3.0);
}

#[test]
fn the_same_state_makes_the_same_file() {
    let (folder, path) = file();
    let mut trainer = trainer(&network(adam(), 2), 42);
    train(&mut trainer, 0..3);
    trainer.save(&path).unwrap();
    let first = fs::read(&path).unwrap();
    trainer.load(&path).unwrap();
    trainer.save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn weights_are_a_state_dict() {
    let (_folder, path) = file();
    let graph = network(adam(), 1);
    let mut trainer = trainer(&graph, 42);
    train(&mut trainer, 0..3);
    trainer.save_weights(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut names: Vec<&str> = tensors.names();
    names.sort();
    assert_eq!(
        names,
        [
            "conv.bias",
            "conv.weight",
            "fc.bias",
            "fc.weight",
            "norm.bias",
            "norm.num_batches_tracked",
            "norm.running_mean",
            "norm.running_var",
            "norm.weight"
        ]
    );
    assert_eq!(tensors.tensor("conv.weight").unwrap().shape(), [3, 1, 3, 3]);
    let counter = tensors.tensor("norm.num_batches_tracked").unwrap();
    assert_eq!((counter.dtype(), counter.shape(), counter.data()), (Dtype::I64, &[][..], &3i64.to_le_bytes()[..]));
    // The data of every tensor is aligned in the file.
    let start = bytes.len() - tensors.iter().map(|(_, tensor)| tensor.data().len()).sum::<usize>();
    assert_eq!(start % 8, 0);

    let error = checkpoint_error(trainer.load(&path)).to_string();
    assert!(error.contains("no state of training") && error.contains("`load_weights`"), "{error}");
    // A whole checkpoint serves for weights, too.
    let (inputs, _) = batch(0);
    let expected = trainer.predict(&inputs).unwrap().to_vec();
    for whole in [false, true] {
        if whole {
            trainer.save(&path).unwrap();
        }
        let mut predictor = Predictor::from_plan(&graph.plan().unwrap(), Cpu::with_threads(1).unwrap(), 0).unwrap();
        predictor.load(&path).unwrap();
        assert_eq!(predictor.predict(&inputs).unwrap(), expected);
    }
}

/// `scripts/torch_checkpoint.py` saved the file with PyTorch's own package, with what its network gives for some inputs.
#[test]
fn a_file_of_pytorchs_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/references/checkpoint");
    let bytes = fs::read(folder.join("outputs.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let floats = |name: &str| -> Vec<f32> {
        let data = tensors.tensor(name).unwrap().data();
        data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    let graph = network(adam(), 1);
    let mut trainer = trainer(&graph, 1);
    trainer.load_weights(folder.join("net.safetensors")).unwrap();
    let mut predictor = Predictor::from_plan(&graph.plan().unwrap(), Cpu::with_threads(1).unwrap(), 1).unwrap();
    predictor.load(folder.join("net.safetensors")).unwrap();
    let inputs = floats("inputs");
    for outputs in [trainer.predict(&inputs).unwrap(), predictor.predict(&inputs).unwrap()] {
        for (found, expected) in outputs.iter().zip(floats("outputs")) {
            assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
        }
    }
}

/// The other way: what is saved here, PyTorch loads, where it is installed. `PYTHON` names an interpreter that has it. Where
/// `PLIMSOLL_NEEDS_PYTORCH` is 1, one that has not is a failure.
#[test]
fn pytorch_loads_what_is_saved() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/torch_checkpoint.py");
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let imports = Command::new(&python).args(["-c", "import torch, safetensors"]).stderr(Stdio::null()).status();
    if !imports.is_ok_and(|status| status.success()) {
        let problem = format!(
            "NOT CHECKED THAT PYTORCH LOADS WHAT IS SAVED: {python} has no PyTorch, or none of the package safetensors; \
             PYTHON names another interpreter"
        );
        assert_ne!(std::env::var("PLIMSOLL_NEEDS_PYTORCH").as_deref(), Ok("1"), "{problem}");
        // Not by a macro, whose output the harness would keep to itself.
        writeln!(std::io::stderr(), "{problem}").unwrap();
        return;
    }
    let (folder, path) = file();
    let mut trainer = trainer(&network(adam(), 2), 42);
    train(&mut trainer, 0..3);
    let (inputs, _) = batch(0);
    let outputs = trainer.predict(&inputs).unwrap().to_vec();
    let text = |values: &[f32]| values.iter().map(f32::to_string).collect::<Vec<_>>().join(" ");
    let numbers = folder.path().join("numbers");
    fs::write(&numbers, format!("{}\n{}\n", text(&inputs), text(&outputs))).unwrap();
    for (whole, argument) in [(false, "strict"), (true, "resume")] {
        if whole {
            trainer.save(&path).unwrap()
        } else {
            trainer.save_weights(&path).unwrap()
        };
        let run = Command::new(&python).arg(&script).arg(argument).args([&path, &numbers]).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

/// A file with these tensors of zeros.
fn write(path: &Path, tensors: &[(&str, Dtype, &[usize])]) {
    let zeros = [0; 4096];
    let views: HashMap<&str, TensorView> = tensors
        .iter()
        .map(|(name, dtype, shape)| {
            let bytes = shape.iter().product::<usize>() * dtype.bitsize() / 8;
            (*name, TensorView::new(*dtype, shape.to_vec(), &zeros[..bytes]).unwrap())
        })
        .collect();
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

#[test]
fn everything_that_does_not_fit_is_listed() {
    let (_folder, path) = file();
    let mut trainer = trainer(&network(adam(), 1), 42);
    let before = bits(&mut trainer);
    write(
        &path,
        &[
            ("conv.weight", Dtype::F32, &[3, 3, 1, 3]),
            ("conv.bias", Dtype::F16, &[3]),
            ("norm.weight", Dtype::F32, &[3]),
            ("norm.running_mean", Dtype::F32, &[3]),
            ("norm.running_var", Dtype::F32, &[3]),
            ("norm.num_batches_tracked", Dtype::I64, &[]),
            ("fc.weight", Dtype::F32, &[5, 48]),
            ("head.num_batches_tracked", Dtype::I64, &[]),
            ("head.\u{1b}[31m", Dtype::F32, &[2]),
        ],
    );
    let error = checkpoint_error(trainer.load_weights(&path));
    assert_eq!(
        error.to_string(),
        format!(
            "{} does not fit `Net`:\n  \
             another shape: `conv.weight` is [3, 3, 1, 3] in the file, [3, 1, 3, 3] in the network\n  \
             another type: `conv.bias` is F16 in the file, not F32\n  \
             missing: `norm.bias` [3]\n  \
             missing: `fc.bias` [5]\n  \
             not in the network: `head.\\u{{1b}}[31m` [2]\n  \
             not in the network: `head.num_batches_tracked` []\n\
             help: a file loads into the network that it was saved from: names and shapes must be the same",
            path.display()
        )
    );
    let checkpoint::Error::Mismatch { differences, .. } = error else { panic!("{error}") };
    assert_eq!(differences[2], Difference::Missing { name: "norm.bias".into(), shape: vec![3] });
    // Nothing was loaded.
    assert_eq!(bits(&mut trainer), before);

    let wrapped = "save the `state_dict` of the module inside of it";
    for (name, is_wrapped) in [
        ("module.fc.weight", true),
        ("_orig_mod.fc.bias", true),
        ("net.fc.weight", true),
        ("net.other", false),
        ("fc.weight", false),
    ] {
        write(&path, &[(name, Dtype::F32, &[5, 48])]);
        let error = checkpoint_error(trainer.load_weights(&path)).to_string();
        assert_eq!(error.ends_with(wrapped), is_wrapped, "{error}");
    }
}

#[test]
fn another_optimizer_or_accumulation_can_not_go_on() {
    let (_folder, path) = file();
    trainer(&network(adam(), 2), 42).save(&path).unwrap();
    for (optimizer, accumulate, expected) in [
        ("adamw", 2, "`optimizer = adam`, but the network has `optimizer = adamw`"),
        ("adam", 1, "`accumulate = 2`, but the network has `accumulate = 1`"),
    ] {
        let graph = network(Optimizer::by_name(optimizer).unwrap(), accumulate);
        let error = checkpoint_error(trainer(&graph, 1).load(&path)).to_string();
        assert!(error.contains(expected) && error.contains("help: `load_weights`"), "{error}");
        trainer(&graph, 1).load_weights(&path).unwrap();
    }
}

#[test]
fn no_file_no_folder() {
    let (folder, path) = file();
    let mut trainer = trainer(&network(adam(), 1), 42);
    let error = checkpoint_error(trainer.load(&path)).to_string();
    assert!(error.contains("net.safetensors: can't open") && error.contains("help: check the path"), "{error}");
    let error = checkpoint_error(trainer.save(folder.path().join("no/net"))).to_string();
    assert!(error.contains("no/net: can't write") && error.contains("a folder must be there"), "{error}");
    let error = checkpoint_error(trainer.load(folder.path())).to_string();
    assert!(error.contains("help:"), "{error}");
    // The first bytes of a file that PyTorch 2.15's `torch.save` made.
    fs::write(&path, b"PK\x03\x04\0\0\x08\x08\0\0\0\0").unwrap();
    let error = checkpoint_error(trainer.load_weights(&path)).to_string();
    assert!(error.contains("such as `torch.save` makes") && error.contains("save_file"), "{error}");
}

#[test]
fn names_that_two_parameters_have() {
    let mut builder = GraphBuilder::new("Twins");
    let x = builder.input("x", DType::F32, &[4]).unwrap();
    let linear = || Layer::Linear(Linear { out_features: 4, bias: false });
    let (a, b) = (builder.member("fc", linear(), false), builder.member("fc", linear(), false));
    let y = builder.call(a, &[x]).unwrap();
    let y = builder.call(b, &[y]).unwrap();
    let training = Training { batch: 1, optimizer: adam(), loss: Loss::Mse, accumulate: 1, clip_grad_norm: None };
    let graph = builder.finish(y, Some(training), None, Budget::default()).unwrap();
    let (_folder, path) = file();
    let error = checkpoint_error(trainer(&graph, 1).save(&path)).to_string();
    assert!(error.starts_with("`Twins` has two parameters `fc.weight`"), "{error}");
    assert!(!path.exists());
}

#[test]
fn hostile_headers_are_errors() {
    let (_folder, path) = file();
    let mut trainer = trainer(&network(adam(), 1), 42);
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let many = format!("{{\"a\":[{}0]}}", "0,".repeat(100_000));
    let cases = [
        (vec![], "it has 0 bytes"),
        (vec![1; 7], "it has 7 bytes"),
        (u64::MAX.to_le_bytes().to_vec(), "a header of 18446744073709551615 bytes follows, but 0 do"),
        (100_000_001u64.to_le_bytes().to_vec(), "a header of 100000001 bytes"),
        (header(""), "its header is no such"),
        (header("[]"), "expected tensors by name"),
        (header("{\"a\":1}"), "its header is no such"),
        (header("{\"\u{0}\""), "its header is no such"),
        (header(&deep), "its header is no such"),
        (header(&many), "its header is no such"),
        (header(r#"{"__metadata__":{"a":1}}"#), "its header is no such"),
        (header(r#"{"a":{"dtype":"F99","shape":[],"data_offsets":[0,0]}}"#), "its header is no such"),
        (header(r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}"#), "its header is no such"),
        (
            header(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#),
            "speaks of 8 bytes of tensors, but 0 follow",
        ),
        (header(r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#), "its header makes no sense"),
        (header(r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#), "its header makes no sense"),
        (
            header(r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]}}"#),
            "its header makes no sense",
        ),
        (
            header(
                r#"{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#,
            ),
            "twice",
        ),
    ];
    for (bytes, expected) in cases {
        fs::write(&path, &bytes).unwrap();
        let error = checkpoint_error(trainer.load_weights(&path)).to_string();
        assert!(error.contains(expected) && error.contains("help: the file is damaged"), "{expected}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A file that was cut, or of which some bytes are others, is an error or loads; it never makes a panic. A cut is seen.
    #[test]
    fn damage_is_an_error(cut in 0.0..1.0f64, changes in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 1..6)) {
        let (_folder, path) = file();
        let mut trainer = trainer(&network(adam(), 2), 42);
        train(&mut trainer, 0..1);
        trainer.save(&path).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..(cut * whole.len() as f64) as usize]).unwrap();
        prop_assert!(trainer.load(&path).is_err());
        prop_assert!(trainer.load_weights(&path).is_err());
        // Most of the changes in the header, which the first part is.
        let mut bytes = whole.clone();
        for (place, byte) in changes {
            bytes[(place * place * whole.len() as f64) as usize] = byte;
        }
        fs::write(&path, &bytes).unwrap();
        let _ = trainer.load(&path);
        let _ = trainer.load_weights(&path);
        // The weights may be any numbers now, even none.
        let (inputs, targets) = batch(1);
        let _ = trainer.step(&inputs, &targets);
    }
}

const SAVE_TO: &str = "PLIMSOLL_TEST_SAVE_TO";

/// The process that the test below kills: it saves again and again, each time with all weights set to another number.
#[test]
fn helper_that_saves_in_a_loop() {
    let Ok(path) = std::env::var(SAVE_TO) else { return };
    let graph = network(adam(), 1);
    let mut trainer = trainer(&graph, 42);
    for number in std::process::id().. {
        for parameter in &graph.parameters {
            trainer.load_parameter(&parameter.path, &vec![number as f32; parameter.elements() as usize]).unwrap();
        }
        trainer.save(&path).unwrap();
    }
}

#[test]
fn a_process_that_is_killed_leaves_a_whole_file() {
    let (folder, path) = file();
    let mut trainer = trainer(&network(adam(), 1), 1);
    trainer.save(&path).unwrap();
    for round in 0..40 {
        let before = fs::read(&path).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["helper_that_saves_in_a_loop", "--exact"])
            .env(SAVE_TO, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while fs::read(&path).unwrap() == before {
            assert!(start.elapsed() < Duration::from_secs(60), "the process does not come so far as to save");
        }
        // At another moment within a save each time.
        std::thread::sleep(Duration::from_micros(round * 371));
        child.kill().unwrap();
        child.wait().unwrap();
        trainer.load(&path).unwrap();
        let bits = bits(&mut trainer);
        assert!(bits.iter().all(|value| *value == bits[0]), "weights of two moments in one file");
    }
    // What the last of them left behind goes with the next save.
    trainer.save(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
