//! What the planner did to need less memory, by the name of each saving.

use crate::order::Action;
use crate::plan::{Plan, Planned};
use crate::schedule::{Access, Role, StepKind};
use crate::strategy::cheap::is_product;
use crate::strategy::{Saving, row_tiles};

/// A saving that a plan makes use of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Which one.
    pub saving: Saving,
    /// How many gradients or values it concerns.
    pub count: usize,
    /// The bytes that these would take, were each a buffer of its own. They need not be live at the same time: what the peak
    /// would be without the saving, planning tells ([`Graph::without`](crate::graph::Graph::without)).
    pub bytes: u64,
}

impl Used {
    /// What became of the things that it concerns, for a reader.
    pub(super) fn outcome(&self) -> &'static str {
        match self.saving {
            Saving::StepOrder => "in another order",
            Saving::InPlace => "written in place",
            _ => "not kept",
        }
    }
}

impl Plan {
    /// The savings that the training step makes use of, in the order of the reference.
    pub fn savings(&self) -> Vec<Used> {
        let Some(training) = &self.training else { return Vec::new() };
        let used = Saving::ALL.into_iter().map(|saving| {
            let bytes = self.saved_by(saving, training);
            Used { saving, count: bytes.len(), bytes: bytes.iter().copied().fold(0, u64::saturating_add) }
        });
        used.filter(|used| used.count > 0).collect()
    }

    /// What `recompute` makes of the training step: its compute over that of a step that does nothing twice. Nothing where
    /// the budget does not ask for it, or where nothing is computed again.
    pub fn recomputation(&self) -> Option<f64> {
        let training = self.training.as_ref().filter(|_| self.graph.budget.recompute)?;
        Some(training.compute(&self.graph)).filter(|compute| *compute > 1.0)
    }

    /// The peak in bytes, were a saving switched off. Nothing with `recompute`, which stops at the budget whatever is saved.
    pub fn peak_without(&self, saving: Saving) -> Option<u64> {
        if self.graph.budget.recompute {
            return None;
        }
        let mut graph = self.graph.clone();
        graph.without.push(saving);
        Some(graph.plan().ok()?.peak_bytes())
    }

    /// The bytes of each thing that is not there thanks to a saving.
    fn saved_by(&self, saving: Saving, training: &Planned) -> Vec<u64> {
        let (graph, steps) = (&self.graph, &training.schedule.steps);
        let parameter = |index: usize| graph.parameters[index].bytes();
        match saving {
            Saving::MomentumGradients => {
                let added = steps.iter().filter_map(|step| match step.kind {
                    StepKind::Update { parameter } if step.buffer(Role::ParameterGradient(0)).is_none() => {
                        Some(parameter)
                    }
                    _ => None,
                });
                added.map(|id| parameter(id.index())).collect()
            }
            Saving::RowTiles => {
                let nodes = training.strategy.row_tiles.iter().map(|&node| &graph.nodes[node as usize]);
                let weights = nodes.map(|n| (&n.layer, &graph.parameters[n.parameters[0].index()]));
                weights.map(|(layer, weight)| weight.bytes() - row_tiles::tile_bytes(layer, weight)).collect()
            }
            Saving::SlicedLoss => {
                let heads = steps.iter().filter_map(|step| match step.kind {
                    StepKind::SlicedLoss { node } => Some(node),
                    _ => None,
                });
                let logits = heads.map(|head| graph.value_type(graph.value_of(head)).size());
                logits.map(|size| size.bytes(training.placement.batch).unwrap_or(u64::MAX)).collect()
            }
            Saving::CheapRecomputation => {
                // With `recompute` in the budget, what is computed again is its doing.
                if graph.budget.recompute && !graph.uses(Saving::CheapRecomputation) {
                    return Vec::new();
                }
                let mut runs = vec![0u32; graph.nodes.len()];
                for action in &training.strategy.order {
                    if let Action::Forward(node) = *action {
                        runs[node as usize] += 1;
                    }
                }
                let again = (0..graph.nodes.len()).filter(|&node| runs[node] > 1 && !is_product(graph, node));
                let values = again.map(|node| graph.value_type(graph.value_of(node)).size());
                values.map(|size| size.bytes(training.placement.batch).unwrap_or(u64::MAX)).collect()
            }
            Saving::StepOrder => {
                let forward = training.strategy.order.iter().take_while(|action| **action != Action::Loss);
                let nodes: Vec<Action> = forward.copied().collect();
                let late = nodes.windows(2).filter(|pair| pair[0] > pair[1]);
                late.map(|_| 0).collect()
            }
            Saving::ConcatInPlace => {
                let parts = training.schedule.parts.iter().enumerate().filter(|(_, parts)| !parts.is_empty());
                let sizes = parts.map(|(value, _)| graph.types[value].size());
                sizes.map(|size| size.bytes(training.placement.batch).unwrap_or(u64::MAX)).collect()
            }
            Saving::InPlace => {
                let buffers = steps.iter().flat_map(|step| {
                    let made = step.operands.iter().filter(|operand| {
                        matches!(operand.role, Role::Output | Role::InputGradient(_)) && operand.access == Access::Write
                    });
                    let is_read = |buffer| {
                        step.operands.iter().any(|other| other.buffer == buffer && other.access == Access::Read)
                    };
                    made.map(|operand| operand.buffer).filter(move |buffer| is_read(*buffer))
                });
                let sizes = buffers.map(|buffer| training.schedule.buffers[buffer.index()].size);
                sizes.map(|size| size.bytes(training.placement.batch).unwrap_or(u64::MAX)).collect()
            }
        }
    }
}
