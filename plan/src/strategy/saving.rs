//! The ways to save memory, by name.

use serde::{Deserialize, Serialize};

use crate::graph::Graph;

/// A way to need less memory in a training step at no or little cost. All are in use unless switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saving {
    /// SGD's gradients are added straight to its momentum.
    MomentumGradients,
    /// The gradient of a large weight exists a tile of rows at a time.
    RowTiles,
    /// The loss and its logits are computed over slices of the classes.
    SlicedLoss,
    /// What costs little to compute again is not kept for backward.
    CheapRecomputation,
    /// Layers run in another order than the declared one, where the network leaves a choice.
    StepOrder,
    /// A concat is not made: what reads it reads its inputs where they are.
    ConcatInPlace,
    /// What a step makes takes the place of what nobody needs any more.
    InPlace,
}

impl Saving {
    /// Every saving, in the order of the reference.
    pub const ALL: [Saving; 7] = [
        Saving::MomentumGradients,
        Saving::RowTiles,
        Saving::SlicedLoss,
        Saving::CheapRecomputation,
        Saving::StepOrder,
        Saving::ConcatInPlace,
        Saving::InPlace,
    ];

    /// All but writing in place, which is customary elsewhere too: what a plain step does without.
    pub const BEYOND_IN_PLACE: &[Saving] = match Saving::ALL.split_last() {
        Some((Saving::InPlace, others)) => others,
        _ => panic!("writing in place is the last of them"),
    };

    /// Its name in `#[without(..)]`.
    pub const fn name(self) -> &'static str {
        match self {
            Saving::MomentumGradients => "momentum_gradients",
            Saving::RowTiles => "row_tiles",
            Saving::SlicedLoss => "sliced_loss",
            Saving::CheapRecomputation => "cheap_recomputation",
            Saving::StepOrder => "step_order",
            Saving::ConcatInPlace => "concat_in_place",
            Saving::InPlace => "in_place",
        }
    }

    /// The saving of that name.
    pub fn find(name: &str) -> Option<Saving> {
        Saving::ALL.into_iter().find(|saving| saving.name() == name)
    }

    /// What it does, in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            Saving::MomentumGradients => "gradients are added straight to the momentum of SGD",
            Saving::RowTiles => "large weights are updated a tile of rows at a time, so that no whole gradient exists",
            Saving::SlicedLoss => "where the logits would set the peak, cross-entropy works over slices of the classes",
            Saving::CheapRecomputation => {
                "values that cost less than 1% of the step are computed again instead of kept"
            }
            Saving::StepOrder => "layers run in the order that needs less, where the network leaves a choice",
            Saving::ConcatInPlace => {
                "convolutions, batch norms and pools read a concat's inputs where they are, and no concat exists"
            }
            Saving::InPlace => {
                "an activation, a residual sum, a loss's gradient and others take the place of what nobody needs any more"
            }
        }
    }
}

impl Graph {
    /// Whether the planner may use a saving.
    pub fn uses(&self, saving: Saving) -> bool {
        !self.without.contains(&saving)
    }

    /// What if the planner did without some of its savings?
    #[must_use]
    pub fn without(mut self, savings: &[Saving]) -> Graph {
        self.without = savings.to_vec();
        self
    }
}
