//! Initial values of parameters and of the optimizer's state.
//!
//! Each parameter draws from a stream of its own, so that its values depend on the seed and its place in the network
//! alone: not on threads, and not on the device.

use plimsoll_plan::layers::Init;

use crate::philox::{Purpose, Stream};

/// Values that are made at a time, on the stack.
pub const BLOCK: usize = 1024;

/// Elements `start..start + values.len()` of the parameter at `index`. `start` is a multiple of four.
pub fn fill(init: Init, seed: u64, index: usize, start: u64, values: &mut [f32]) {
    let stream = Stream::new(seed, Purpose::Init, index as u32, 0);
    match init {
        Init::Constant(value) => values.fill(value as f32),
        Init::Uniform { bound } => {
            for (block, values) in values.chunks_mut(4).enumerate() {
                for (value, random) in values.iter_mut().zip(stream.uniform(start / 4 + block as u64)) {
                    *value = (bound * (2.0 * f64::from(random) - 1.0)) as f32;
                }
            }
        }
        Init::Normal { mean, std } => {
            for (block, values) in values.chunks_mut(4).enumerate() {
                for (value, random) in values.iter_mut().zip(stream.normal(start / 4 + block as u64)) {
                    *value = (mean + std * f64::from(random)) as f32;
                }
            }
        }
    }
}
