//! Names in `forward`.

use super::expressions::Sort;
use super::{Local, Resolver};
use crate::ast::{ExprKind, Forward};

impl Resolver<'_> {
    pub(super) fn forward(&mut self, forward: &mut Forward) {
        self.in_forward = true;
        self.incomplete |= !forward.inputs_known;
        for input in &forward.inputs {
            self.locals.push(Local { name: input.name.text.clone(), sort: Sort::Value, used: false });
        }
        for statement in &mut forward.lets {
            let sort = self.expression(&mut statement.value);
            self.locals.push(Local { name: statement.name.text.clone(), sort, used: false });
        }
        if let Some(output) = &mut forward.output {
            let sort = self.expression(output);
            let uses_none = forward.inputs_known && !self.locals[..forward.inputs.len()].iter().any(|input| input.used);
            let wrong = match sort {
                Sort::Number => Some(("`forward` returns a number", "return a value computed from its inputs")),
                // What it computes from are parameters alone.
                Sort::Value if uses_none && self.block.is_none() && !self.unknown_seen && !forward.incomplete => {
                    Some(("the output is the same for every sample", "it must be computed from an input"))
                }
                _ => None,
            };
            if let Some((message, help)) = wrong
                && !matches!(output.kind, ExprKind::Unknown)
            {
                self.report.error(output.place, message, help);
                output.kind = ExprKind::Unknown;
                forward.incomplete = true;
            }
        }
        let used = self.locals.iter().map(|local| local.used);
        let flags = forward.inputs.iter_mut().map(|i| &mut i.used).chain(forward.lets.iter_mut().map(|l| &mut l.used));
        for (flag, used) in flags.zip(used) {
            *flag = used;
        }
        forward.incomplete |= self.unknown_seen;
        self.locals.clear();
        self.in_forward = false;
    }
}
