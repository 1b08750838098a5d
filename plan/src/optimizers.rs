//! The optimizers, with PyTorch's names, defaults and state.

use serde::{Deserialize, Serialize};

use crate::arguments::{ArgumentError, Default, Definition, Kind, optional};

/// Every optimizer that the language knows.
pub static DEFINITIONS: &[&Definition<Optimizer>] = &[&SGD, &ADAM, &ADAMW, &RMSPROP, &ADAGRAD, &LION];

/// The optimizer of that name.
pub fn find(name: &str) -> Option<&'static Definition<Optimizer>> {
    DEFINITIONS.iter().copied().find(|d| d.name == name)
}

const BETA: Kind = Kind::FloatPair { min: 0.0, max: 1.0 };

/// How `sgd` is called.
pub static SGD: Definition<Optimizer> = Definition {
    name: "sgd",
    summary: "stochastic gradient descent, with momentum (Sutskever et al. 2013)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-3)),
        optional("momentum", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("dampening", Kind::NUMBER, Default::Float(0.0)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("nesterov", Kind::Bool, Default::Bool(false)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| {
        let (momentum, dampening, nesterov) = (a.float("momentum"), a.float("dampening"), a.bool("nesterov"));
        if nesterov && (momentum == 0.0 || dampening != 0.0) {
            return Err(ArgumentError::new("nesterov", "`nesterov` needs a `momentum` above zero and no `dampening`"));
        }
        Ok(Optimizer::Sgd { lr: a.float("lr"), momentum, dampening, weight_decay: a.float("weight_decay"), nesterov })
    },
};

/// How `adam` is called.
pub static ADAM: Definition<Optimizer> = Definition {
    name: "adam",
    summary: "adaptive moments (Kingma & Ba 2015)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-3)),
        optional("betas", BETA, Default::Floats(0.9, 0.999)),
        optional("eps", Kind::NON_NEGATIVE, Default::Float(1e-8)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| {
        let (lr, betas, eps, weight_decay) = (a.float("lr"), betas(a)?, a.float("eps"), a.float("weight_decay"));
        Ok(Optimizer::Adam { lr, betas, eps, weight_decay })
    },
};

/// How `adamw` is called.
pub static ADAMW: Definition<Optimizer> = Definition {
    name: "adamw",
    summary: "adaptive moments with decoupled weight decay (Loshchilov & Hutter 2019)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-3)),
        optional("betas", BETA, Default::Floats(0.9, 0.999)),
        optional("eps", Kind::NON_NEGATIVE, Default::Float(1e-8)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(1e-2)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| {
        let (lr, betas, eps, weight_decay) = (a.float("lr"), betas(a)?, a.float("eps"), a.float("weight_decay"));
        Ok(Optimizer::AdamW { lr, betas, eps, weight_decay })
    },
};

/// How `rmsprop` is called.
pub static RMSPROP: Definition<Optimizer> = Definition {
    name: "rmsprop",
    summary: "gradients over the root of their running square (Hinton 2012)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-2)),
        optional("alpha", Kind::FRACTION, Default::Float(0.99)),
        optional("eps", Kind::NON_NEGATIVE, Default::Float(1e-8)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("momentum", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("centered", Kind::Bool, Default::Bool(false)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| {
        Ok(Optimizer::RmsProp {
            lr: a.float("lr"),
            alpha: a.float("alpha"),
            eps: a.float("eps"),
            weight_decay: a.float("weight_decay"),
            momentum: a.float("momentum"),
            centered: a.bool("centered"),
        })
    },
};

/// How `adagrad` is called.
pub static ADAGRAD: Definition<Optimizer> = Definition {
    name: "adagrad",
    summary: "gradients over the root of the sum of their squares (Duchi et al. 2011)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-2)),
        optional("lr_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("initial_accumulator_value", Kind::NON_NEGATIVE, Default::Float(0.0)),
        optional("eps", Kind::NON_NEGATIVE, Default::Float(1e-10)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| {
        Ok(Optimizer::Adagrad {
            lr: a.float("lr"),
            lr_decay: a.float("lr_decay"),
            weight_decay: a.float("weight_decay"),
            initial_accumulator_value: a.float("initial_accumulator_value"),
            eps: a.float("eps"),
        })
    },
};

/// How `lion` is called.
pub static LION: Definition<Optimizer> = Definition {
    name: "lion",
    summary: "the sign of an interpolated momentum (Chen et al. 2023)",
    arguments: &[
        optional("lr", Kind::NON_NEGATIVE, Default::Float(1e-4)),
        optional("betas", BETA, Default::Floats(0.9, 0.99)),
        optional("weight_decay", Kind::NON_NEGATIVE, Default::Float(0.0)),
    ],
    inputs: 0..=0,
    has_parameters: false,
    build: |a| Ok(Optimizer::Lion { lr: a.float("lr"), betas: betas(a)?, weight_decay: a.float("weight_decay") }),
};

fn betas(a: &crate::arguments::Arguments) -> Result<[f64; 2], ArgumentError> {
    let betas = a.floats("betas");
    match betas[..] {
        [first, second] if first < 1.0 && second < 1.0 => Ok([first, second]),
        _ => Err(ArgumentError::new(
            "betas",
            format!(
                "`betas` must both be below 1, not ({})",
                betas.iter().map(|b| format!("{b:?}")).collect::<Vec<_>>().join(", ")
            ),
        )),
    }
}

/// An optimizer with its arguments. Formulas and state are those of `torch.optim`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // The fields are the arguments, described in the definitions above.
pub enum Optimizer {
    /// See [`SGD`].
    Sgd { lr: f64, momentum: f64, dampening: f64, weight_decay: f64, nesterov: bool },
    /// See [`ADAM`].
    Adam { lr: f64, betas: [f64; 2], eps: f64, weight_decay: f64 },
    /// See [`ADAMW`].
    AdamW { lr: f64, betas: [f64; 2], eps: f64, weight_decay: f64 },
    /// See [`RMSPROP`].
    RmsProp { lr: f64, alpha: f64, eps: f64, weight_decay: f64, momentum: f64, centered: bool },
    /// See [`ADAGRAD`].
    Adagrad { lr: f64, lr_decay: f64, weight_decay: f64, initial_accumulator_value: f64, eps: f64 },
    /// See [`LION`].
    Lion { lr: f64, betas: [f64; 2], weight_decay: f64 },
}

impl Optimizer {
    /// The optimizer of that name with its default arguments.
    pub fn by_name(name: &str) -> Option<Optimizer> {
        let definition = find(name)?;
        let arguments = crate::arguments::Arguments::check(definition.arguments, Vec::new()).ok()?;
        (definition.build)(&arguments).ok()
    }

    /// Its name in the language.
    pub fn name(&self) -> &'static str {
        match self {
            Optimizer::Sgd { .. } => "sgd",
            Optimizer::Adam { .. } => "adam",
            Optimizer::AdamW { .. } => "adamw",
            Optimizer::RmsProp { .. } => "rmsprop",
            Optimizer::Adagrad { .. } => "adagrad",
            Optimizer::Lion { .. } => "lion",
        }
    }

    /// The learning rate that it is declared with.
    pub fn lr(&self) -> f64 {
        match *self {
            Optimizer::Sgd { lr, .. }
            | Optimizer::Adam { lr, .. }
            | Optimizer::AdamW { lr, .. }
            | Optimizer::RmsProp { lr, .. }
            | Optimizer::Adagrad { lr, .. }
            | Optimizer::Lion { lr, .. } => lr,
        }
    }

    /// The tensors that it keeps for each parameter, each of the parameter's size, under PyTorch's names. The count of
    /// steps is the trainer's, on the host.
    pub fn state(&self) -> &'static [&'static str] {
        match self {
            Optimizer::Sgd { momentum, .. } if *momentum == 0.0 => &[],
            Optimizer::Sgd { .. } => &["momentum_buffer"],
            Optimizer::Adam { .. } | Optimizer::AdamW { .. } => &["exp_avg", "exp_avg_sq"],
            Optimizer::RmsProp { momentum, centered, .. } => match (*momentum > 0.0, centered) {
                (false, false) => &["square_avg"],
                (true, false) => &["square_avg", "momentum_buffer"],
                (false, true) => &["square_avg", "grad_avg"],
                (true, true) => &["square_avg", "momentum_buffer", "grad_avg"],
            },
            Optimizer::Adagrad { .. } => &["sum"],
            Optimizer::Lion { .. } => &["exp_avg"],
        }
    }
}
