//! The optimizers' updates, with the formulas of `torch.optim` (Lion: those of its authors), and clipping by global norm.

use std::ops::Range;

use plimsoll_plan::graph::Node;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::strategy::row_tiles;

use super::parallel::{self, CHUNK};
use super::step::Step;
use super::vector::wide;
use crate::device::Arguments;

/// Updates one parameter; an accumulated gradient is left at zero.
pub fn update(step: &Step) {
    let mut state = State::of(step);
    let scale = step.read_if::<f32>(Role::GradientScale).map_or(1.0, |scale| scale[0]);
    let gradient = Role::ParameterGradient(0);
    if !step.has(gradient) {
        state.update_from_momentum();
    } else if step.adds(gradient) {
        let gradient = step.write(gradient);
        state.update(0, (&*gradient, scale));
        parallel::chunks(gradient, CHUNK, |_, chunk| chunk.fill(0.0));
    } else {
        state.update(0, (step.read(gradient), scale));
    }
}

/// Updates the weight of a node a tile of rows at a time. `gradient` writes the tile of some rows, with the layer's own
/// workspace beside.
pub fn update_rows(step: &Step, node: usize, gradient: impl Fn(Range<usize>, &mut [f32], &mut [f32])) {
    let Node { layer, parameters, .. } = step.program().node(node);
    let weight = &step.program().graph.parameters[parameters[0].index()];
    let mut state = State::of(step);
    let count = weight.shape.0[0] as usize;
    let size = state.parameter.len() / count;
    let most = row_tiles::tile_rows(layer, weight) as usize;
    let (tile, workspace) = step.write::<f32>(Role::Workspace).split_at_mut(most * size);
    for first in (0..count).step_by(most) {
        let rows = first..count.min(first + most);
        let tile = &mut tile[..rows.len() * size];
        gradient(rows, tile, workspace);
        state.update(first * size, (tile, 1.0));
    }
}

/// A parameter with the optimizer's state for it.
pub struct State<'a> {
    rule: Rule<'a>,
    parameter: &'a mut [f32],
    /// Empty where the optimizer keeps fewer.
    states: [&'a mut [f32]; 3],
}

impl<'a> State<'a> {
    /// Those that a step updates.
    pub fn of(step: &Step<'a>) -> State<'a> {
        let state = |which| step.write_if(Role::State(which)).unwrap_or_default();
        State {
            rule: Rule::new(&step.program().options().optimizer, step.arguments()),
            parameter: step.write(Role::Parameter(0)),
            states: [state(0), state(1), state(2)],
        }
    }

    /// The parameter as it is.
    pub fn parameter(&self) -> &[f32] {
        self.parameter
    }

    /// The rule, and the parameter and its states that it changes.
    pub fn apart(self) -> (Rule<'a>, [&'a mut [f32]; 4]) {
        let [first, second, third] = self.states;
        (self.rule, [self.parameter, first, second, third])
    }

    /// Updates the elements from `first` on, as many as there are of their gradient.
    pub fn update(&mut self, first: usize, gradient: Gradient) {
        let range = first..first + gradient.0.len();
        let states = self.states.each_mut().map(|state| state.get_mut(range.clone()).unwrap_or_default());
        let [first, second, third] = states;
        self.rule.apply([&mut self.parameter[range], first, second, third], gradient);
    }

    /// SGD's update where the gradient has been added to the momentum already, which the update before had decayed:
    /// `v <- v + decay p`, `p <- p - lr v`, and `v <- momentum v` for the next time.
    fn update_from_momentum(&mut self) {
        let Optimizer::Sgd { momentum, weight_decay, .. } = *self.rule.optimizer else {
            unreachable!("the planner adds gradients only to the momentum of SGD");
        };
        let (lr, momentum, decay) = (self.rule.lr as f32, momentum as f32, weight_decay as f32);
        let [buffer, ..] = &mut self.states;
        parallel::side_by_side([&mut *self.parameter, &mut **buffer], CHUNK, |_, [p, v]| {
            for (p, v) in p.iter_mut().zip(v) {
                let velocity = *v + decay * *p;
                *p -= lr * velocity;
                *v = momentum * velocity;
            }
        });
    }
}

/// The factor that bounds the gradients' global norm, as `torch.nn.utils.clip_grad_norm_` computes it.
pub fn clip_grad_norm(step: &Step) {
    let most = step.program().options().clip_grad_norm.expect("the step is there because a bound is");
    let mut square = 0.0;
    let mut i = 0;
    while let Some(gradient) = step.read_if::<f32>(Role::ParameterGradient(i)) {
        square += parallel::sum(gradient.len(), |range| {
            gradient[range].iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>()
        });
        i += 1;
    }
    step.write(Role::GradientScale)[0] = (most / (square.sqrt() + 1e-6)).min(1.0) as f32;
}

/// An optimizer with the numbers of this update.
pub struct Rule<'a> {
    optimizer: &'a Optimizer,
    lr: f64,
    /// From 1.
    update: u64,
    /// Adam's `1 - beta^t`.
    corrections: [f64; 2],
}

impl<'a> Rule<'a> {
    fn new(optimizer: &'a Optimizer, arguments: &Arguments) -> Rule<'a> {
        let update = arguments.update;
        let corrections = match optimizer {
            Optimizer::Adam { betas, .. } | Optimizer::AdamW { betas, .. } => {
                betas.map(|beta| 1.0 - beta.powf(update as f64))
            }
            _ => [1.0; 2],
        };
        Rule { optimizer, lr: arguments.learning_rate, update, corrections }
    }

    /// Updates a parameter, or a part of it, by its gradient. After the parameter come its states, which may be empty.
    pub fn apply(&self, [p, first, second, third]: [&mut [f32]; 4], g: Gradient) {
        let lr = self.lr as f32;
        let t = self.update as f64;
        match *self.optimizer {
            Optimizer::Sgd { momentum, dampening, weight_decay, nesterov, .. } => {
                let decay = weight_decay as f32;
                if momentum == 0.0 {
                    each(g, p, |d, p| *p -= lr * (d + decay * *p));
                    return;
                }
                // The first buffer is the gradient itself, undampened.
                let (kept, added) =
                    if self.update == 1 { (0.0, 1.0) } else { (momentum as f32, 1.0 - dampening as f32) };
                let momentum = momentum as f32;
                each2(g, p, first, |d, p, buffer| {
                    let d = d + decay * *p;
                    *buffer = kept * *buffer + added * d;
                    *p -= lr * if nesterov { d + momentum * *buffer } else { *buffer };
                });
            }
            Optimizer::Adam { betas, eps, weight_decay, .. } => {
                let adam = Adam::new(self.lr, betas, eps, self.corrections);
                let decay = weight_decay as f32;
                each3(g, p, first, second, |d, p, m, v| *p -= adam.change(d + decay * *p, m, v));
            }
            Optimizer::AdamW { betas, eps, weight_decay, .. } => {
                let adam = Adam::new(self.lr, betas, eps, self.corrections);
                let shrink = (1.0 - self.lr * weight_decay) as f32;
                each3(g, p, first, second, |d, p, m, v| *p = *p * shrink - adam.change(d, m, v));
            }
            Optimizer::RmsProp { alpha, eps, weight_decay, momentum, centered, .. } => {
                let (decay, old, new, eps) = (weight_decay as f32, alpha as f32, (1.0 - alpha) as f32, eps as f32);
                let momentum = momentum as f32;
                let squared = |d: f32, square: &mut f32| {
                    *square = old * *square + new * d * d;
                    d / (square.sqrt() + eps)
                };
                let centred = |d: f32, square: &mut f32, mean: &mut f32| {
                    *square = old * *square + new * d * d;
                    *mean += new * (d - *mean);
                    d / ((*square - *mean * *mean).sqrt() + eps)
                };
                let moved = |change: f32, buffer: &mut f32| {
                    *buffer = momentum * *buffer + change;
                    lr * *buffer
                };
                match (momentum > 0.0, centered) {
                    (false, false) => each2(g, p, first, |d, p, square| *p -= lr * squared(d + decay * *p, square)),
                    (true, false) => each3(g, p, first, second, |d, p, square, buffer| {
                        *p -= moved(squared(d + decay * *p, square), buffer);
                    }),
                    (false, true) => each3(g, p, first, second, |d, p, square, mean| {
                        *p -= lr * centred(d + decay * *p, square, mean);
                    }),
                    (true, true) => each4(g, p, first, second, third, |d, p, square, buffer, mean| {
                        *p -= moved(centred(d + decay * *p, square, mean), buffer);
                    }),
                }
            }
            Optimizer::Adagrad { lr_decay, weight_decay, eps, .. } => {
                let lr = (self.lr / (1.0 + (t - 1.0) * lr_decay)) as f32;
                let (decay, eps) = (weight_decay as f32, eps as f32);
                each2(g, p, first, |d, p, sum| {
                    let d = d + decay * *p;
                    *sum += d * d;
                    *p -= lr * d / (sum.sqrt() + eps);
                });
            }
            Optimizer::Lion { betas, weight_decay, .. } => {
                let shrink = (1.0 - self.lr * weight_decay) as f32;
                let [b1, b2] = betas.map(|b| b as f32);
                let [n1, n2] = betas.map(|b| (1.0 - b) as f32);
                each2(g, p, first, |d, p, m| {
                    let direction = b1 * *m + n1 * d;
                    // The sign of zero is zero.
                    let sign = if direction == 0.0 { 0.0 } else { direction.signum() };
                    *p = *p * shrink - lr * sign;
                    *m = b2 * *m + n2 * d;
                });
            }
        }
    }
}

/// The numbers that Adam and AdamW share.
struct Adam {
    new: [f32; 2],
    old: f32,
    step_size: f32,
    /// Of the second moment's correction, the reciprocal: a division takes as long as the rest of the update.
    root: f32,
    eps: f32,
}

impl Adam {
    fn new(lr: f64, betas: [f64; 2], eps: f64, corrections: [f64; 2]) -> Adam {
        Adam {
            new: betas.map(|b| (1.0 - b) as f32),
            old: betas[1] as f32,
            step_size: (lr / corrections[0]) as f32,
            root: corrections[1].sqrt().recip() as f32,
            eps: eps as f32,
        }
    }

    /// Moves the moments by a gradient, and gives what is to be subtracted from the parameter.
    #[inline]
    fn change(&self, d: f32, m: &mut f32, v: &mut f32) -> f32 {
        *m += self.new[0] * (d - *m);
        *v = self.old * *v + self.new[1] * d * d;
        self.step_size * *m / (v.sqrt() * self.root + self.eps)
    }
}

/// A gradient and the factor that bounds it.
pub type Gradient<'a> = (&'a [f32], f32);

/// Calls `f` with each element of the gradient and of the parameter.
fn each(g: Gradient, p: &mut [f32], f: impl Fn(f32, &mut f32) + Sync + Send) {
    parallel::side_by_side([p], CHUNK, |at, [p]| {
        wide(|| p.iter_mut().zip(&g.0[at..]).for_each(|(p, d)| f(d * g.1, p)));
    });
}

/// As [`each`], with a state of the optimizer.
fn each2(g: Gradient, p: &mut [f32], a: &mut [f32], f: impl Fn(f32, &mut f32, &mut f32) + Sync + Send) {
    parallel::side_by_side([p, a], CHUNK, |at, [p, a]| {
        wide(|| p.iter_mut().zip(a).zip(&g.0[at..]).for_each(|((p, a), d)| f(d * g.1, p, a)));
    });
}

/// As [`each`], with two states of the optimizer.
fn each3(
    g: Gradient,
    p: &mut [f32],
    a: &mut [f32],
    b: &mut [f32],
    f: impl Fn(f32, &mut f32, &mut f32, &mut f32) + Sync + Send,
) {
    parallel::side_by_side([p, a, b], CHUNK, |at, [p, a, b]| {
        wide(|| p.iter_mut().zip(a).zip(b).zip(&g.0[at..]).for_each(|(((p, a), b), d)| f(d * g.1, p, a, b)));
    });
}

/// As [`each`], with three states of the optimizer.
fn each4(
    g: Gradient,
    p: &mut [f32],
    a: &mut [f32],
    b: &mut [f32],
    c: &mut [f32],
    f: impl Fn(f32, &mut f32, &mut f32, &mut f32, &mut f32) + Sync + Send,
) {
    parallel::side_by_side([p, a, b, c], CHUNK, |at, [p, a, b, c]| {
        wide(|| {
            p.iter_mut().zip(a).zip(b).zip(c).zip(&g.0[at..]).for_each(|((((p, a), b), c), d)| f(d * g.1, p, a, b, c))
        });
    });
}
