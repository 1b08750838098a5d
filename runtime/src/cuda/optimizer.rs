//! The optimizers' updates, and clipping by global norm: see `optimizer.cu`. Numbers are made ready here, in double
//! precision, as on the CPU.

use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::Role;

use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::error::Error;

/// Updates one parameter; an accumulated gradient is left at zero.
pub fn update(step: &Step) -> Result<(), Error> {
    let (lr, update) = (step.arguments().learning_rate, step.arguments().update);
    let gradient = Role::ParameterGradient(0);
    let [p, g, scale] = [Role::Parameter(0), gradient, Role::GradientScale].map(|role| step.at(role));
    let [first, second, third] = [Role::State(0), Role::State(1), Role::State(2)].map(|role| step.at(role));
    let (count, clears) = (step.count(Role::Parameter(0)), step.adds(gradient));
    let t = update as f64;
    let launch = |kernel: &str, states: &[Pointer], numbers: &[f32], last: &[&dyn Argument]| {
        let mut arguments: [&dyn Argument; 24] = [&0u32; 24];
        let states = states.iter().map(|state| state as &dyn Argument);
        let numbers = numbers.iter().map(|number| number as &dyn Argument);
        let first: [&dyn Argument; 3] = [&p, &g, &scale];
        let all = first.into_iter().chain(states).chain([&count as &dyn Argument, &clears]).chain(numbers);
        let mut length = 0;
        for (to, argument) in arguments.iter_mut().zip(all.chain(last.iter().copied())) {
            *to = argument;
            length += 1;
        }
        step.launch(kernel, Grid::each(count), &arguments[..length])
    };
    match step.program().options().optimizer {
        Optimizer::Sgd { momentum, dampening, weight_decay, nesterov, .. } => {
            // The first buffer is the gradient itself, undampened.
            let (kept, added) = if update == 1 { (0.0, 1.0) } else { (momentum, 1.0 - dampening) };
            let numbers = [lr, weight_decay, momentum, kept, added].map(|x| x as f32);
            launch("sgd", &[first], &numbers, &[&i32::from(nesterov)])
        }
        Optimizer::Adam { betas, eps, weight_decay, .. } => {
            launch("adam", &[first, second], &adam(lr, betas, eps, t, [weight_decay, 1.0]), &[])
        }
        Optimizer::AdamW { betas, eps, weight_decay, .. } => {
            launch("adam", &[first, second], &adam(lr, betas, eps, t, [0.0, 1.0 - lr * weight_decay]), &[])
        }
        Optimizer::RmsProp { alpha, eps, weight_decay, momentum, centered, .. } => {
            // PyTorch's order: the square, then the buffer if there is momentum, then the mean if it is centered.
            let (buffer, mean) = match (momentum > 0.0, centered) {
                (false, false) => (Pointer::NONE, Pointer::NONE),
                (true, false) => (second, Pointer::NONE),
                (false, true) => (Pointer::NONE, second),
                (true, true) => (second, third),
            };
            let numbers = [lr, weight_decay, alpha, 1.0 - alpha, eps, momentum].map(|x| x as f32);
            launch("rmsprop", &[first, buffer, mean], &numbers, &[])
        }
        Optimizer::Adagrad { lr_decay, weight_decay, eps, .. } => {
            let lr = lr / (1.0 + (t - 1.0) * lr_decay);
            launch("adagrad", &[first], &[lr, weight_decay, eps].map(|x| x as f32), &[])
        }
        Optimizer::Lion { betas: [b1, b2], weight_decay, .. } => {
            let numbers = [lr, 1.0 - lr * weight_decay, b1, 1.0 - b1, b2, 1.0 - b2].map(|x| x as f32);
            launch("lion", &[first], &numbers, &[])
        }
    }
}

/// The numbers of Adam and AdamW, in the kernel's order.
fn adam(lr: f64, betas: [f64; 2], eps: f64, t: f64, [decay, shrink]: [f64; 2]) -> [f32; 8] {
    let step_size = lr / (1.0 - betas[0].powf(t));
    let root = (1.0 - betas[1].powf(t)).sqrt();
    [decay, shrink, 1.0 - betas[0], betas[1], 1.0 - betas[1], step_size, root, eps].map(|x| x as f32)
}

/// The factor that bounds the gradients' global norm.
pub fn clip_grad_norm(step: &Step) -> Result<(), Error> {
    let most = step.program().options().clip_grad_norm.expect("the step is there because a bound is") as f32;
    let total = step.at(Role::GradientScale);
    for i in 0.. {
        let gradient = Role::ParameterGradient(i);
        if !step.has(gradient) {
            break;
        }
        let count = step.count(gradient);
        let arguments: &[&dyn Argument] = &[&step.at(gradient), &total, &count, &i32::from(i == 0)];
        step.launch("add_squares", Grid::groups(1, count), arguments)?;
    }
    step.launch("gradient_scale", Grid::groups(1, 1), &[&total, &most])
}
