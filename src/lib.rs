//! Neural networks whose memory is planned at compile time. Over its budget, a network does not build.
//!
//! [`network!`] reads a declaration in PyTorch's words, plans every byte of a training step while your program compiles, and
//! makes a type whose constants are the bytes.
//!
//! ```
//! use plimsoll::network;
//!
//! network! {
//!     /// The CIFAR-10 multi-layer perceptron.
//!     #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
//!     #[budget(8 MB)]
//!     pub struct CifarMlp(image: f32[3, 32, 32]) {
//!         flatten,
//!         fc1: linear(128),
//!         relu,
//!         fc2: linear(10),
//!     }
//! }
//!
//! // 3072 x 128 + 128 + 128 x 10 + 10 weights; Adam keeps two moments of each.
//! assert_eq!(CifarMlp::PARAMETERS, 394_634);
//! assert_eq!(CifarMlp::OPTIMIZER_BYTES, 2 * 4 * CifarMlp::PARAMETERS);
//! // Constants: rustc can compute with them.
//! const TWO: u64 = 2 * CifarMlp::PEAK_BYTES;
//! const _: () = assert!(TWO < 16_000_000);
//! ```
//!
//! With a budget that is too small it is an error, with the numbers and with what would fit:
//!
//! ```compile_fail
//! # use plimsoll::network;
//! network! {
//!     #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
//!     #[budget(4 MB)]
//!     struct CifarMlp(image: f32[3, 32, 32]) { flatten, linear(128), relu, linear(10) }
//! }
//! ```
//!
//! # The constants of a network
//!
//! In bytes (`u64`) unless said. The type's own page in `cargo doc` has them with their values, a picture of the arena and
//! the table of layers.
//!
//! | constant | meaning |
//! |---|---|
//! | `BATCH` | the declared batch (`usize`) |
//! | `PARAMETERS` | trainable scalars |
//! | `PARAMETER_BYTES` | all weights, trained or frozen |
//! | `GRADIENT_BYTES` | the gradients of all trained weights; they need not all exist at once |
//! | `OPTIMIZER_BYTES` | the optimizer's state |
//! | `BUFFER_BYTES` | untrained state, such as running statistics |
//! | `INPUT_BYTES` | a batch of inputs and targets |
//! | `ACTIVATION_BYTES` | the outputs of all layers for one batch, as layer tables count them |
//! | `SAVED_BYTES` | what this plan keeps from forward to backward |
//! | `WORKSPACE_BYTES` | the largest workspace of any step |
//! | `TEXTBOOK_BYTES` | the hand formula: parameters + gradients + optimizer + input + 2 x activations |
//! | `PEAK_BYTES` | what training allocates, exactly; for a network that is not trained, what inference does |
//! | `PEAK_CLASSES` | what is live where the peak is, by class; it adds up to `PEAK_BYTES` |
//! | `LOWER_BOUND_BYTES` | the most bytes live at one step |
//! | `INFERENCE_BYTES` | what inference alone allocates, exactly |
//! | `BUDGET_BYTES`, `HEADROOM_BYTES` | the budget, and what is left of it; only where one is declared |
//! | `MAX_BATCH` | the largest batch that fits the budget (`usize`); only where one is declared |
//! | `FLOPS`, `RECOMPUTE_FLOPS` | multiply-adds x 2 of one step, and the part that recomputation adds |
//! | `LAYERS` | the inputs, then each layer, as [`LayerRow`]s |
//! | the network's own `const`s | whole numbers as `usize` |
//!
//! Beside them there is `summary()`, the same for the terminal, and the trait [`Network`] with [`PLAN`](Network::PLAN), the
//! plan as data, and [`graph()`](Network::graph), to ask "what if":
//!
//! ```
//! # use plimsoll::network;
//! # network! {
//! #     #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
//! #     struct CifarMlp(image: f32[3, 32, 32]) { flatten, linear(128), relu, linear(10) }
//! # }
//! use plimsoll::Network;
//!
//! let larger = CifarMlp::graph().batch(64).plan()?;
//! assert!(larger.peak_bytes() > CifarMlp::PEAK_BYTES);
//! # Ok::<(), plimsoll::plan::placement::PlanError>(())
//! ```
//!
//! # What is where
//!
//! - [`network!`]: the macro, with the language in brief.
//! - [`assert_fits!`]: several networks on one device.
//! - [`Network`], [`Plan`], [`LayerRow`]: what a network's type gives.
//! - [`Trainer`] and [`Predictor`] on a device, such as [`Cpu`]: a network that runs, in exactly the planned bytes.
//! - [`plan`]: the planner: graphs, steps, buffers, offsets, reports. It can be used without the macro.
//! - [`data`]: datasets, transforms and a loader.
//! - [`runtime`]: devices, inputs, learning rates, metrics, and devices that put a plan to the proof.
//!
//! The reference of the language, training beside PyTorch's loop, the design, and how the numbers are proved are in the
//! repository's folder `docs`.

#[doc(hidden)]
pub mod fits;

/// Declares a neural network, plans every byte of its training step, and refuses to build where a declared budget is
/// exceeded.
///
/// # The language in brief
///
/// A network is a type with inputs and members. Members run in order. A member's name is part of its parameters' names,
/// as in PyTorch; without a name, its position is. Input sizes are inferred, and the batch is never part of a shape.
///
/// ```
/// use plimsoll::network;
///
/// network! {
///     #[train(batch = 64, optimizer = sgd(lr = 0.1, momentum = 0.9), loss = cross_entropy)]
///     #[budget(300 MB)]
///     pub struct Small(image: u8[3, 32, 32]) {
///         // Known everywhere below, and exported as `Small::CLASSES`.
///         const CLASSES = 10;
///
///         // Bytes become floats on the device: a batch takes a quarter of the memory.
///         normalize(mean = [0.5], std = [0.25]),
///         stem: conv2d(16, kernel = 3, padding = 1),
///         relu,
///         // A list is PyTorch's `Sequential`. `[a; n]` is n copies of a.
///         body: [Residual(16), Residual(32, stride = 2), [Residual(32); 2]],
///         adaptive_avgpool2d(1),
///         flatten,
///         fc: linear(CLASSES),
///     }
///
///     // A block is a part with arguments, used by its name.
///     block Residual(channels, stride = 1) {
///         conv1: conv2d(channels, kernel = 3, stride = stride, padding = 1, bias = false),
///         bn1: batchnorm2d,
///         conv2: conv2d(channels, kernel = 3, padding = 1, bias = false),
///         bn2: batchnorm2d,
///         // Without `else`: the identity.
///         shortcut: if stride != 1 { conv2d(channels, kernel = 1, stride = stride) },
///
///         // `x.f()` and `f(x)` are the same.
///         fn forward(x) {
///             let y = x.conv1().bn1().relu().conv2().bn2();
///             relu(y + shortcut(x))
///         }
///     }
/// }
///
/// assert_eq!(Small::CLASSES, 10);
/// assert!(Small::PEAK_BYTES <= Small::BUDGET_BYTES);
/// assert!(Small::LAYERS.iter().any(|layer| layer.path == "body.1.shortcut"));
/// ```
///
/// Attributes of the network:
///
/// - `#[train(batch, optimizer, loss, accumulate = 1, clip_grad_norm)]`: how it is trained. Without it, the network is for
///   inference only.
/// - `#[infer(batch)]`: the batch of inference, where that is not the one of training.
/// - `#[budget(12 GB)]`, `#[budget(train = 12 GB, infer = 1 GB)]`, either with `reserve = 600 MB` beside: what it may use.
///   `GB` is 10^9 bytes, `GiB` 2^30. With `recompute` beside, `#[budget(12 GB, recompute)]`, activations are dropped and
///   computed again until training fits, at the least compute that is found.
/// - `#[without(row_tiles)]`: without some of the planner's savings of memory, by the names that
///   [`Saving`](plan::strategy::Saving) has.
/// - documentation, lints, derives: passed on to the type.
///
/// `#[freeze]` on a member: it is not trained, and nothing is kept for it. `tied(member)` is a linear layer with another
/// member's weight:
///
/// ```
/// # use plimsoll::network;
/// network! {
///     #[train(batch = 8, optimizer = adam, loss = mse)]
///     struct Tied(x: f32[16]) {
///         #[freeze]
///         backbone: [linear(16), relu],
///         up: linear(16, bias = false),
///         relu,
///         down: tied(up),
///     }
/// }
///
/// assert_eq!(Tied::PARAMETERS, 16 * 16);
/// ```
///
/// Every mistake is reported, at its own token, with a remedy:
///
/// ```compile_fail
/// # use plimsoll::network;
/// network! {
///     // error: unknown layer `lineer`
///     // help: did you mean `linear`?
///     struct Typo(x: f32[16]) { lineer(16) }
/// }
/// ```
///
/// The whole language, with every layer, loss and optimizer, is described in `docs/language.md` of the repository.
#[doc(inline)]
pub use plimsoll_macros::network;
pub use plimsoll_plan as plan;
pub use plimsoll_plan::network::{LayerRow, Network, PlanRef};
pub use plimsoll_plan::plan::Plan;
#[doc(hidden)]
pub use plimsoll_plan::sums::{Totals, check_sums};
pub use plimsoll_runtime as runtime;
#[cfg(feature = "cuda")]
pub use plimsoll_runtime::Cuda;
pub use plimsoll_runtime::element::Element;
pub use plimsoll_runtime::{
    Cpu, Device, EarlyStopping, Error, Inputs, Metrics, Predictor, Slice, Trainer, Verdict, checkpoint, data, device,
    learning_rate,
};

// Every snippet of the documents is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/language.md")]
struct Language;

#[cfg(doctest)]
#[doc = include_str!("../docs/training.md")]
struct Training;

#[cfg(doctest)]
#[doc = include_str!("../docs/checkpoints.md")]
struct Checkpoints;

#[cfg(doctest)]
#[doc = include_str!("../docs/plan-json.md")]
struct PlanJson;

#[cfg(doctest)]
#[doc = include_str!("../docs/add-a-layer.md")]
struct AddALayer;
