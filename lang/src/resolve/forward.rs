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
        if let Some(output) = &mut forward.output
            && self.expression(output) == Sort::Number
            && !matches!(output.kind, ExprKind::Unknown)
        {
            let message = "`forward` returns a number";
            self.report.error(output.place, message, "return a value computed from its inputs");
            output.kind = ExprKind::Unknown;
            forward.incomplete = true;
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
