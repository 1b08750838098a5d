//! `#[train]`, `#[infer]` and `#[budget]`, and the graph that they complete.

use plimsoll_plan::arguments::{Definition, MAX_INTEGER, Value};
use plimsoll_plan::graph::{Budget, Graph, ParameterRole, Training, ValueId};
use plimsoll_plan::{losses, optimizers};

use super::{Lowering, with_help};
use crate::ast::{Expr, ExprKind, Network, Place, Settings, Target};
use crate::evaluate::{Scope, evaluate, float, shown};

impl Lowering<'_, '_> {
    /// `#[train(...)]`.
    pub(super) fn training(&mut self, settings: &Settings) -> Option<Training> {
        let batch = self.count_setting(settings, "batch", None);
        let accumulate = self.count_setting(settings, "accumulate", Some(1));
        let clip = self.clip(settings);
        let optimizer = self.by_name(settings, "optimizer", optimizers::find);
        let loss = self.by_name(settings, "loss", losses::find);
        Some(Training {
            batch: batch?,
            optimizer: optimizer?,
            loss: loss?,
            accumulate: accumulate?,
            clip_grad_norm: clip?,
        })
    }

    /// `#[infer(...)]`.
    pub(super) fn inference(&mut self, settings: &Settings) -> Option<u64> {
        self.count_setting(settings, "batch", None)
    }

    /// An integer of at least 1, or `default` where it is not given.
    fn count_setting(&mut self, settings: &Settings, name: &str, default: Option<u64>) -> Option<u64> {
        let Some(value) = settings.given(name) else { return default };
        match self.evaluated(value)? {
            Value::Int(v) if (1..=MAX_INTEGER).contains(&v) => Some(v.unsigned_abs()),
            other => {
                let message = format!("`{name}` must be an integer of at least 1, not {}", shown(&other));
                self.report.error(
                    value.place,
                    message,
                    format!("write `{name} = 32`, for example; at most {MAX_INTEGER}"),
                );
                None
            }
        }
    }

    /// The outer option: `None` after a mistake.
    fn clip(&mut self, settings: &Settings) -> Option<Option<f64>> {
        let Some(value) = settings.given("clip_grad_norm") else { return Some(None) };
        let number = self.evaluated(value)?;
        match float(&number) {
            Some(v) if v > 0.0 => Some(Some(v)),
            _ => {
                let message = format!("`clip_grad_norm` must be a number above 0, not {}", shown(&number));
                self.report.error(value.place, message, "write `clip_grad_norm = 1.0`, or leave it out");
                None
            }
        }
    }

    fn by_name<T: 'static>(
        &mut self,
        settings: &Settings,
        name: &str,
        find: impl Fn(&str) -> Option<&'static Definition<T>>,
    ) -> Option<T> {
        let ExprKind::Call(call) = &settings.given(name)?.kind else { return None };
        let Target::Setting(slots) = &call.target else { return None };
        self.build(call, "", find(&call.name.text)?, slots, &[], &[])
    }

    fn evaluated(&mut self, value: &Expr) -> Option<Value> {
        evaluate(value, Scope { consts: self.consts, parameters: &[], locals: &[] }, self.report)
    }

    /// Whether there is something to train, where training is declared.
    fn learns(&mut self, network: &Network, graph: &Graph) -> bool {
        let Some(settings) = &network.train else { return true };
        // What is missing after a mistake may have had some.
        if graph.trainable_parameters() > 0 || !self.report.is_empty() {
            return true;
        }
        let without = format!("write `#[infer(batch = {})]` instead", graph.declared_batch());
        if graph.parameters.iter().all(|parameter| parameter.role == ParameterRole::Buffer) {
            let message = "nothing to train: the network has no parameters";
            self.report.error(&settings.name, message, format!("add a layer that has some, or {without}"));
        } else {
            let message = "nothing to train: all parameters are frozen";
            self.report.error(&settings.name, message, format!("take `#[freeze]` off a member, or {without}"));
        }
        false
    }

    /// The graph with all that was declared, if nothing is wrong.
    pub(super) fn finish(
        &mut self,
        network: &Network,
        output: ValueId,
        training: Option<Option<Training>>,
        inference: Option<Option<u64>>,
    ) -> Option<Graph> {
        let mut budget = Budget::default();
        if let Some(declared) = &network.budget {
            budget.train = declared.train.filter(|_| training.is_some()).map(|amount| amount.bytes);
            budget.infer = declared.infer.map(|amount| amount.bytes);
            budget.reserve = declared.reserve.map_or(0, |amount| amount.bytes);
            budget.recompute = declared.recompute.is_some();
            budget.units = declared.units();
        }
        // `Some(None)`: declared, but wrong, which was reported.
        let training_known = training.as_ref().is_none_or(Option::is_some);
        let inference_known = inference.as_ref().is_none_or(Option::is_some);
        let training = training.flatten();
        let output_type = self.builder.value_type(output).clone();
        let loss_place = network.train.as_ref().and_then(|settings| settings.given("loss")).map(|loss| loss.place);
        if let (Some(training), Some(place)) = (&training, loss_place)
            && let Err(message) = training.loss.target(&output_type)
        {
            self.report.push(place, with_help(&message, "end the network with the layer that the loss needs"));
            return None;
        }
        let builder = std::mem::replace(&mut self.builder, plimsoll_plan::graph::GraphBuilder::new(""));
        match builder.finish(output, training, inference.flatten(), budget) {
            Ok(mut graph) if self.learns(network, &graph) => {
                graph.without = network.without.as_ref().map_or(Vec::new(), |without| without.savings.clone());
                (training_known && inference_known).then_some(graph)
            }
            Ok(_) => None,
            Err(error) => {
                let forward = network.body.forward.as_ref().and_then(|forward| forward.output.as_ref());
                let last = network.body.members.last();
                let place = forward.map(|expr| expr.place).or(last.map(|member| member.layer.place()));
                let place = place.unwrap_or(Place::from(&network.name));
                self.report.push(place, with_help(&error.message, "end with a layer that computes floats"));
                None
            }
        }
    }
}
