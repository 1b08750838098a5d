//! Tensors of `[channels, ...]`: what lies at one channel of one sample, a plane, is contiguous.

use plimsoll_plan::shape::ValueType;

use super::parallel::CHUNK;
use super::step::Pair;

/// The extents of a tensor with channels.
#[derive(Clone, Copy)]
pub struct Channels {
    /// The first extent of a sample.
    pub count: usize,
    /// The others' product.
    pub positions: usize,
}

impl Channels {
    /// Those of a value; one number a sample counts as one channel.
    pub fn of(value: &ValueType) -> Channels {
        let count = value.shape.0.first().copied().unwrap_or(1) as usize;
        Channels { count, positions: value.elements() as usize / count }
    }

    /// Elements of one sample.
    pub fn sample(self) -> usize {
        self.count * self.positions
    }

    /// The planes of a channel, one for each sample.
    pub fn planes(self, x: &[f32], channel: usize) -> impl Iterator<Item = &[f32]> {
        let first = channel * self.positions;
        x.chunks_exact(self.sample()).map(move |sample| &sample[first..first + self.positions])
    }

    /// Calls `work` with every plane and its number among the planes of all samples, on several threads.
    pub fn for_each_plane(self, pair: Pair, work: impl Fn(usize, Pair) + Sync + Send) {
        let planes = CHUNK.div_ceil(self.positions);
        pair.chunks(planes * self.positions, |chunk, mut pair| {
            for plane in 0..pair.len() / self.positions {
                let first = plane * self.positions;
                work(chunk * planes + plane, pair.part(first..first + self.positions));
            }
        });
    }

    /// Puts `f(channel)(x)` in place of every `x`, on several threads.
    pub fn map<F: Fn(f32) -> f32>(self, pair: Pair, f: impl Fn(usize) -> F + Sync + Send) {
        self.for_each_plane(pair, |plane, mut pair| {
            let f = f(plane % self.count);
            pair.map(|_, x| f(x));
        });
    }

    /// Puts `f(channel)(x, o)` in place of every `x`, where `o` is the element of `other` at its place, on several threads.
    pub fn zip<F: Fn(f32, f32) -> f32>(self, pair: Pair, other: &[f32], f: impl Fn(usize) -> F + Sync + Send) {
        self.for_each_plane(pair, |plane, mut pair| {
            let first = plane * self.positions;
            pair.zip(&other[first..first + self.positions], f(plane % self.count));
        });
    }
}
