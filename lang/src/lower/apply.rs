//! Values flow through what was put in place.

use plimsoll_plan::graph::ValueId;

use super::instantiate::{Instance, LayerNode, Node};
use super::{Lowering, Site};

/// A value, or `None` after a mistake that was reported.
pub(super) type Flow = Option<ValueId>;

impl<'a> Lowering<'a, '_> {
    /// Values through a network or block.
    pub(super) fn flow(&mut self, instance: &Instance<'a>, inputs: &[Flow], site: Site<'a>) -> Flow {
        match instance.forward {
            Some(forward) => {
                if !self.takes(inputs.len(), forward.inputs.len(), site) {
                    return None;
                }
                self.forward(instance, forward, inputs)
            }
            None => {
                if !self.takes(inputs.len(), 1, site) {
                    return None;
                }
                self.chain(&instance.members, inputs[0])
            }
        }
    }

    /// One value through members in order.
    fn chain(&mut self, nodes: &[Node<'a>], input: Flow) -> Flow {
        let mut value = input;
        for node in nodes {
            let site = match node {
                Node::Layer(layer) => Site::call(layer.call),
                Node::Tied { call, .. } | Node::Block(_, call) => Site::call(call),
                Node::Sequence(_, site) => *site,
                Node::Unknown => return None,
                Node::Identity => continue,
            };
            value = self.apply(node, &[value], site);
        }
        value
    }

    /// Values through a member.
    pub(super) fn apply(&mut self, node: &Node<'a>, inputs: &[Flow], site: Site<'a>) -> Flow {
        if !self.step(site) || !self.enter(site) {
            return None;
        }
        let output = match node {
            Node::Unknown => None,
            Node::Identity => {
                if self.takes(inputs.len(), 1, site) {
                    inputs[0]
                } else {
                    None
                }
            }
            Node::Layer(layer) => self.apply_layer(layer, inputs, site),
            Node::Tied { path, source, frozen, call } => {
                if self.takes(inputs.len(), 1, site) {
                    self.apply_tied(path, source, *frozen, inputs[0], Site::new(call.place, *call))
                } else {
                    None
                }
            }
            Node::Sequence(nodes, _) => {
                if self.takes(inputs.len(), 1, site) {
                    self.chain(nodes, inputs[0])
                } else {
                    None
                }
            }
            Node::Block(instance, _) => self.flow(instance, inputs, site),
        };
        self.leave();
        output
    }

    fn apply_layer(&mut self, layer: &LayerNode<'a>, inputs: &[Flow], site: Site<'a>) -> Flow {
        let name = layer.definition.name;
        let takes = &layer.definition.inputs;
        if !takes.contains(&inputs.len()) {
            if *takes.end() == 0 {
                if self.report.first_at_address(site.node) {
                    let message = format!("a `{name}` is a value itself, and is not applied to another");
                    self.report.error(site.place, message, "use it by its name in `fn forward`: `x * layer_scale`");
                }
            } else {
                self.takes(inputs.len(), *takes.start(), site);
            }
            return None;
        }
        let values = inputs.iter().copied().collect::<Option<Vec<ValueId>>>()?;
        if !self.count_applied(site.place) {
            return None;
        }
        let again = self.builder.is_called(layer.member);
        match self.builder.call(layer.member, &values) {
            Ok(value) => Some(value),
            // The first call was right, so the mistake is in this one.
            Err(error) if again => {
                if self.report.first_at_address(site.node) {
                    let message = super::with_help(&error.message, "declare a second member for other shapes");
                    self.report.push(site.place, message);
                }
                None
            }
            Err(error) => {
                self.layer_error(layer.call, layer.definition.arguments, layer.slots, &layer.path, &error.message);
                None
            }
        }
    }

    fn apply_tied(&mut self, path: &str, source: &str, frozen: bool, input: Flow, site: Site<'a>) -> Flow {
        let Some(&member) = self.paths.get(source) else {
            if self.report.first_at_address(site.node) {
                let message = format!("there is no layer `{source}` whose weight could be used");
                self.report.error(site.place, message, "name a `linear` member, by its path: `tied(encoder.embed)`");
            }
            return None;
        };
        // A frozen list that holds both freezes the weight where it is.
        if frozen && !self.frozen.contains(&member) {
            if self.report.first_at_address(site.node) {
                let message = format!("`{path}` has no weight of its own to freeze");
                self.report.error(
                    site.place,
                    message,
                    format!("put `#[freeze]` before `{source}`, whose weight it uses"),
                );
            }
            return None;
        }
        let input = input?;
        if !self.count_applied(site.place) {
            return None;
        }
        let tied = match self.tied.get(path) {
            Some(tied) => *tied,
            None => {
                let tied = self.builder.tied(path, member);
                self.tied.insert(path.to_string(), tied);
                tied
            }
        };
        match self.builder.call(tied, &[input]) {
            Ok(value) => Some(value),
            Err(error) => {
                if self.report.first_at_address(site.node) {
                    let help = format!("`{source}` comes first, and its weight has [outputs, inputs]");
                    self.report.push(site.place, super::with_help(&error.message, &help));
                }
                None
            }
        }
    }

    /// Whether something that takes `needed` values is given as many.
    fn takes(&mut self, given: usize, needed: usize, site: Site) -> bool {
        if given == needed {
            return true;
        }
        if self.report.first_at_address(site.node) {
            let count = |n: usize| match n {
                0 => "none".to_string(),
                1 => "one value".to_string(),
                n => format!("{n} values"),
            };
            let message = format!("`{}` takes {}, but is given {}", site.what, count(needed), count(given));
            let help = match needed {
                1 => format!("apply it to one value: `{}(x)`", site.what),
                _ => "apply it in `fn forward` to as many values as its own `forward` has inputs".to_string(),
            };
            self.report.error(site.place, message, help);
        }
        false
    }
}
