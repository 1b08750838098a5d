//! Elements zeroed at random in training, the others scaled by `1 / (1 - p)`.
//!
//! The mask is nowhere kept: element `i` of the batch has a random number of its own, the word `i % 4` of Philox at the
//! counter `(i / 4, node, pass)` under the trainer's seed, which backward computes again.

use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::schedule::Role;

use super::parallel::CHUNK;
use super::step::{Pair, Step};
use crate::philox::{philox, uniform};

const WORDS: usize = 4;

/// `y = x mask / (1 - p)`.
pub fn forward(layer: &Dropout, step: &Step, node: usize) {
    apply(layer, step, node, step.pair(Role::Input(0), Role::Output));
}

/// `dx = dy mask / (1 - p)`.
pub fn backward(layer: &Dropout, step: &Step, node: usize) {
    if let Some(gradient) = step.gradient_pair(0) {
        apply(layer, step, node, gradient);
    }
}

fn apply(layer: &Dropout, step: &Step, node: usize, pair: Pair) {
    let (p, scale) = (layer.p as f32, (1.0 / (1.0 - layer.p)) as f32);
    let (seed, pass) = (step.arguments().seed, step.arguments().pass as u32);
    pair.chunks(CHUNK, |chunk, mut pair| {
        for start in (0..pair.len()).step_by(WORDS) {
            let group = (chunk * CHUNK + start) / WORDS;
            let words = philox(seed, [group as u32, (group >> 32) as u32, node as u32, pass]);
            let end = pair.len().min(start + WORDS);
            pair.part(start..end).map(|i, x| if uniform(words[i]) < p { 0.0 } else { x * scale });
        }
    });
}
