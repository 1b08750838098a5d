//! The optimizers' updates, and clipping by global norm: see `optimizer.cu`. Numbers are made ready here, in double
//! precision, as on the CPU.

use plimsoll_plan::graph::Node;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::Role;
use plimsoll_plan::strategy::row_tiles;

use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::error::Error;

/// Updates one parameter; an accumulated gradient is left at zero.
pub fn update(step: &Step) -> Result<(), Error> {
    let gradient = Role::ParameterGradient(0);
    let whole = Range { step, first: 0, count: step.count(Role::Parameter(0)) };
    match step.has(gradient) {
        true => whole.update(step.at(gradient), step.adds(gradient)),
        false => whole.update_from_momentum(),
    }
}

/// Updates the weight of a node a tile of rows at a time. `gradient` writes the tile of some rows; beside it lies the layer's own
/// workspace, of so many floats.
pub fn update_rows(
    step: &Step,
    node: usize,
    gradient: impl Fn(std::ops::Range<u32>, Pointer, Pointer, u32) -> Result<(), Error>,
) -> Result<(), Error> {
    let Node { layer, parameters, .. } = step.program().node(node);
    let weight = &step.program().graph.parameters[parameters[0].index()];
    let count = weight.shape.0[0] as u32;
    let size = step.count(Role::Parameter(0)) / count;
    let most = row_tiles::tile_rows(layer, weight) as u32;
    let tile = step.at(Role::Workspace);
    let (rest, floats) = (tile.after(most as usize * size as usize), step.count(Role::Workspace) - most * size);
    for first in (0..count).step_by(most as usize) {
        let rows = first..count.min(first + most);
        let elements = rows.len() as u32 * size;
        gradient(rows, tile, rest, floats)?;
        update_range(step, first * size, elements, tile)?;
    }
    Ok(())
}

/// Updates the elements from `first` on, of which there is the gradient.
pub fn update_range(step: &Step, first: u32, count: u32, gradient: Pointer) -> Result<(), Error> {
    Range { step, first, count }.update(gradient, 0)
}

/// Some elements of a parameter, with the optimizer's state for them.
struct Range<'a> {
    step: &'a Step<'a>,
    first: u32,
    count: u32,
}

impl Range<'_> {
    /// Where the elements lie in a tensor of the parameter's size, if the optimizer has it.
    fn of(&self, role: Role) -> Pointer {
        match self.step.at(role) {
            Pointer::NONE => Pointer::NONE,
            tensor => tensor.after(self.first as usize),
        }
    }

    /// By their gradient, which is set to zero if it `clears`.
    fn update(&self, gradient: Pointer, clears: i32) -> Result<(), Error> {
        let (lr, update) = (self.step.arguments().learning_rate, self.step.arguments().update);
        let t = update as f64;
        let state = |which| self.of(Role::State(which));
        let launch =
            |kernel, states: &[Pointer], numbers: &[f32]| self.launch(kernel, gradient, clears, states, numbers);
        match self.step.program().options().optimizer {
            Optimizer::Sgd { momentum, dampening, weight_decay, nesterov, .. } => {
                // The first buffer is the gradient itself, undampened.
                let (kept, added) = if update == 1 { (0.0, 1.0) } else { (momentum, 1.0 - dampening) };
                // Nesterov's step looks ahead by the momentum.
                let ahead = if nesterov { momentum } else { 0.0 };
                launch("sgd", &[state(0)], &[lr, weight_decay, kept, added, ahead].map(|x| x as f32))
            }
            Optimizer::Adam { betas, eps, weight_decay, .. } => {
                launch("adam", &[state(0), state(1)], &adam(lr, betas, eps, t, [weight_decay, 1.0]))
            }
            Optimizer::AdamW { betas, eps, weight_decay, .. } => {
                launch("adam", &[state(0), state(1)], &adam(lr, betas, eps, t, [0.0, 1.0 - lr * weight_decay]))
            }
            Optimizer::RmsProp { alpha, eps, weight_decay, momentum, centered, .. } => {
                // PyTorch's order: the square, then the buffer if there is momentum, then the mean if it is centered.
                let (buffer, mean) = match (momentum > 0.0, centered) {
                    (false, false) => (Pointer::NONE, Pointer::NONE),
                    (true, false) => (state(1), Pointer::NONE),
                    (false, true) => (Pointer::NONE, state(1)),
                    (true, true) => (state(1), state(2)),
                };
                let numbers = [lr, weight_decay, alpha, 1.0 - alpha, eps, momentum].map(|x| x as f32);
                launch("rmsprop", &[state(0), buffer, mean], &numbers)
            }
            Optimizer::Adagrad { lr_decay, weight_decay, eps, .. } => {
                let lr = lr / (1.0 + (t - 1.0) * lr_decay);
                launch("adagrad", &[state(0)], &[lr, weight_decay, eps].map(|x| x as f32))
            }
            Optimizer::Lion { betas: [b1, b2], weight_decay, .. } => {
                let numbers = [lr, 1.0 - lr * weight_decay, b1, 1.0 - b1, b2, 1.0 - b2].map(|x| x as f32);
                launch("lion", &[state(0)], &numbers)
            }
        }
    }

    /// Starts an optimizer's kernel: its states and numbers, among what all of them take.
    fn launch(
        &self,
        kernel: &str,
        gradient: Pointer,
        clears: i32,
        states: &[Pointer],
        numbers: &[f32],
    ) -> Result<(), Error> {
        const MOST: usize = 16;
        let (p, scale) = (self.of(Role::Parameter(0)), self.step.at(Role::GradientScale));
        let before: [&dyn Argument; 3] = [&p, &gradient, &scale];
        let between: [&dyn Argument; 2] = [&self.count, &clears];
        let states = states.iter().map(|state| state as &dyn Argument);
        let numbers = numbers.iter().map(|number| number as &dyn Argument);
        let mut arguments: [&dyn Argument; MOST] = [&0u32; MOST];
        let mut length = 0;
        for argument in before.into_iter().chain(states).chain(between).chain(numbers) {
            arguments[length] = argument;
            length += 1;
        }
        self.step.launch(kernel, Grid::each(self.count), &arguments[..length])
    }

    /// SGD's update where the gradient has been added to the momentum already.
    fn update_from_momentum(&self) -> Result<(), Error> {
        let Optimizer::Sgd { momentum, weight_decay, .. } = self.step.program().options().optimizer else {
            unreachable!("the planner adds gradients only to the momentum of SGD");
        };
        let [p, buffer] = [Role::Parameter(0), Role::State(0)].map(|role| self.of(role));
        let [lr, decay, momentum] =
            [self.step.arguments().learning_rate, weight_decay, momentum].map(|number| number as f32);
        let arguments: &[&dyn Argument] = &[&p, &buffer, &self.count, &lr, &decay, &momentum];
        self.step.launch("sgd_from_momentum", Grid::each(self.count), arguments)
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
