//! Tensors of `[channels, ...]`: what lies at one channel of one sample, a plane, is contiguous.

use std::ops::Range;

use plimsoll_plan::shape::ValueType;

use super::parallel::{self, CHUNK};
use super::step::Pair;
use super::vector::wide;

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
    #[inline(always)]
    fn for_each_plane(self, pair: Pair, work: impl Fn(usize, Pair) + Sync + Send) {
        let planes = CHUNK.div_ceil(self.positions);
        pair.chunks(planes * self.positions, |chunk, mut pair| {
            wide(|| {
                for plane in 0..pair.len() / self.positions {
                    let first = plane * self.positions;
                    work(chunk * planes + plane, pair.part(first..first + self.positions));
                }
            });
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

    /// Puts `f(channel)(x)` for every `x` of some `channels` of a part into `y`, which has these channels from `first` on. On
    /// several threads.
    pub fn map_part<F: Fn(f32) -> f32>(
        self,
        part: Planes,
        channels: Range<usize>,
        y: &mut [f32],
        first: usize,
        f: impl Fn(usize) -> F + Sync + Send,
    ) {
        parallel::chunks(y, self.sample(), |sample, y| {
            wide(|| {
                for channel in channels.clone() {
                    let f = f(channel);
                    let y = &mut y[(first + channel - channels.start) * self.positions..][..self.positions];
                    y.iter_mut().zip(part.plane(sample, channel)).for_each(|(y, x)| *y = f(*x));
                }
            });
        });
    }

    /// A tensor with such channels.
    pub fn planes_of(self, elements: &[f32]) -> Planes<'_> {
        Planes { elements, channels: self }
    }

    /// How many channels [`sums`](Channels::sums) is best asked for at a time.
    pub fn side_by_side(self) -> usize {
        (ELEMENTS / self.positions).clamp(1, self.count.div_ceil(4))
    }

    /// For some channels, those from `first` on of either tensor, the sums of `f(constant(channel), x, y)` over the batch and
    /// all positions. For constants, channels are counted as in the first tensor.
    ///
    /// Where planes are small, those of neighbouring channels are one row of a sample, and each of its elements has a sum of
    /// its own until the end; where they are large, the sums are those of several lanes.
    pub fn sums<const N: usize>(
        self,
        [x, y]: [(Planes, usize); 2],
        constant: impl Fn(usize) -> f64,
        f: impl Fn(f64, f64, f64) -> [f64; N],
        sums: &mut [[f64; N]],
    ) {
        let width = sums.len() * self.positions;
        let lanes = width.min(if width > ELEMENTS { LANES } else { ELEMENTS });
        assert!(width <= ELEMENTS || sums.len() == 1, "too many channels side by side");
        let mut constants = [0.0; ELEMENTS];
        for (lane, constants) in constants[..lanes].iter_mut().enumerate() {
            *constants = constant(x.1 + lane / self.positions);
        }
        let mut totals = [[0.0; ELEMENTS]; N];
        wide(|| {
            let [x, y] = [x, y].map(|(planes, first)| {
                let begin = first * self.positions;
                planes.elements.chunks_exact(planes.channels.sample()).map(move |sample| &sample[begin..begin + width])
            });
            for (x, y) in x.zip(y) {
                for (x, y) in x.chunks(lanes).zip(y.chunks(lanes)) {
                    let (x, y) = (&x[..x.len()], &y[..x.len()]);
                    for lane in 0..x.len() {
                        let terms = f(constants[lane], f64::from(x[lane]), f64::from(y[lane]));
                        totals.iter_mut().zip(terms).for_each(|(totals, term)| totals[lane] += term);
                    }
                }
            }
        });
        for (i, sums) in sums.iter_mut().enumerate() {
            let lanes = i * self.positions..((i + 1) * self.positions).min(lanes);
            *sums = totals.each_ref().map(|totals| totals[lanes.clone()].iter().sum());
        }
    }
}

/// A tensor with channels, as planes.
#[derive(Clone, Copy)]
pub struct Planes<'a> {
    elements: &'a [f32],
    channels: Channels,
}

impl<'a> Planes<'a> {
    /// The plane of a channel of a sample.
    pub fn plane(self, sample: usize, channel: usize) -> &'a [f32] {
        let Channels { count, positions } = self.channels;
        &self.elements[(sample * count + channel) * positions..][..positions]
    }
}

/// Sums that are kept side by side for planes that are small, and lanes for large ones.
const ELEMENTS: usize = 512;
const LANES: usize = 64;
