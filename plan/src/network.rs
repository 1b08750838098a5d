//! What `network!` gives a network: its numbers as constants and its plan as data.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::graph::Graph;
pub use crate::layer_table::LayerRow;
use crate::plan::Plan;

/// A network that `network!` declared.
///
/// Its constants are also inherent ones of the type, with more beside them (see the type's own page).
pub trait Network: 'static {
    /// The type's name.
    const NAME: &'static str;
    /// The declared batch.
    const BATCH: usize;
    /// Trainable scalars.
    const PARAMETERS: u64;
    /// Bytes of all weights, trained or frozen.
    const PARAMETER_BYTES: u64;
    /// Bytes of the gradients of all trained weights; they need not all exist at once.
    const GRADIENT_BYTES: u64;
    /// Bytes of the optimizer's state.
    const OPTIMIZER_BYTES: u64;
    /// Bytes of untrained state, such as running statistics.
    const BUFFER_BYTES: u64;
    /// Bytes of a batch of inputs and targets.
    const INPUT_BYTES: u64;
    /// Bytes of the outputs of all layers for one batch, as layer tables count them.
    const ACTIVATION_BYTES: u64;
    /// Bytes that the plan keeps from forward to backward.
    const SAVED_BYTES: u64;
    /// Bytes of the largest workspace of any step.
    const WORKSPACE_BYTES: u64;
    /// The hand formula: parameters + gradients + optimizer + input + 2 x activations, in bytes.
    const TEXTBOOK_BYTES: u64;
    /// What training allocates, in bytes; for a network that is not trained, what inference does.
    const PEAK_BYTES: u64;
    /// The most bytes live at one step.
    const LOWER_BOUND_BYTES: u64;
    /// What inference allocates, in bytes.
    const INFERENCE_BYTES: u64;
    /// Multiply-adds x 2 of one step at the declared batch.
    const FLOPS: u64;
    /// The declared budget in bytes, if there is one.
    const BUDGET_BYTES: Option<u64>;
    /// The inputs, then each layer.
    const LAYERS: &'static [LayerRow];
    /// The plan, read where it is first used.
    const PLAN: PlanRef;

    /// The network as data, to ask "what if": `graph().batch(64).plan()`.
    fn graph() -> Graph {
        Self::PLAN.graph.clone()
    }
}

/// A plan that a program carries. It dereferences to [`Plan`], which is read from the embedded bytes at first use.
#[derive(Clone, Copy)]
pub struct PlanRef {
    bytes: &'static [u8],
    cell: fn() -> &'static OnceLock<Plan>,
}

impl PlanRef {
    /// For the code that `network!` writes: the bytes of [`Plan::to_bytes`], and where the plan read from them is kept.
    #[doc(hidden)]
    pub const fn new(bytes: &'static [u8], cell: fn() -> &'static OnceLock<Plan>) -> PlanRef {
        PlanRef { bytes, cell }
    }
}

impl Deref for PlanRef {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        (self.cell)().get_or_init(|| match Plan::from_bytes(self.bytes) {
            Ok(plan) => plan,
            // The macro and this crate are built from the same version, as their manifests demand.
            Err(error) => panic!("{error}: `plimsoll-macros` and `plimsoll-plan` are of different versions"),
        })
    }
}
