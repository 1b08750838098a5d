//! Tensors of `[channels, ...]`: what lies at one channel of one sample, a plane, is contiguous.

use std::marker::PhantomData;
use std::ops::Range;

use plimsoll_plan::shape::ValueType;

use super::parallel::{self, CHUNK};
use super::step::Pair;
use super::vector::{Wide, run_wide, wide};

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

    /// How these channels lie in a tensor that has no others.
    pub fn alone(self) -> Lies {
        self.among(self, 0)
    }

    /// How these channels lie in a tensor that has more, from the channel `first` on.
    pub fn among(self, all: Channels, first: usize) -> Lies {
        Lies { sample: all.sample(), first: first * self.positions }
    }

    /// Calls `work` with blocks of neighbouring channels of a pair, on several threads: with the first channel's number, the
    /// planes of the block in all samples, and an element of `results` for each of its channels. Of these are the channels from
    /// `first` on. How the channels lie is said of what is read and of what is written.
    ///
    /// What work does to a block one after the other, it does while the block is in the cache.
    pub fn blocks<T: Send>(
        self,
        pair: &mut Pair,
        lies: [Lies; 2],
        first: usize,
        results: &mut [T],
        work: impl Fn(usize, &mut Block, &mut [T]) + Sync + Send,
    ) {
        let shared = Shared::new(pair, lies);
        let size = self.side_by_side();
        parallel::chunks(results, size, |i, results| {
            let first = first + i * size;
            assert!(first + results.len() <= self.count, "more results than channels");
            work(first, &mut Block { channels: self, shared: &shared, first, count: results.len() }, results);
        });
    }

    /// How many channels are best together: where planes are small, those of several channels are one row of a sample.
    fn side_by_side(self) -> usize {
        (ELEMENTS / self.positions).clamp(1, self.count.div_ceil(4))
    }
}

/// How some channels lie in a tensor: the elements of its samples, and where the first of the channels begins in each.
#[derive(Clone, Copy)]
pub struct Lies {
    sample: usize,
    first: usize,
}

/// A pair of which several tasks have different channels.
struct Shared<'a> {
    from: *const f32,
    to: *mut f32,
    /// How the channels lie in either.
    lies: [Lies; 2],
    /// Elements that may be read, and that may be written.
    lengths: [usize; 2],
    in_place: bool,
    adds: bool,
    pair: PhantomData<&'a mut [f32]>,
}

// SAFETY: each block has channels of its own, which are different elements, and is reached by one task alone.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    fn new(pair: &'a mut Pair, lies: [Lies; 2]) -> Self {
        let length = pair.len();
        match pair {
            Pair::InPlace(values) => {
                let to = values.as_mut_ptr();
                Shared { from: to, to, lies, lengths: [length; 2], in_place: true, adds: false, pair: PhantomData }
            }
            Pair::Apart { from, to, adds } => Shared {
                from: from.as_ptr(),
                lies,
                lengths: [length, to.len()],
                to: to.as_mut_ptr(),
                in_place: false,
                adds: *adds,
                pair: PhantomData,
            },
        }
    }
}

/// Some neighbouring channels of a pair in all samples.
pub struct Block<'a> {
    channels: Channels,
    shared: &'a Shared<'a>,
    first: usize,
    count: usize,
}

impl Block<'_> {
    fn samples(&self) -> usize {
        self.shared.lengths[0] / self.shared.lies[0].sample
    }

    /// Where the block lies in a sample.
    fn range(&self, lies: Lies, sample: usize) -> Range<usize> {
        let start = sample * lies.sample + lies.first + self.first * self.channels.positions;
        start..start + self.count * self.channels.positions
    }

    /// What is read of a sample: the planes of the block, one after the other.
    fn row(&self, sample: usize) -> &[f32] {
        let range = self.range(self.shared.lies[0], sample);
        assert!(range.end <= self.shared.lengths[0], "beyond what is read");
        // SAFETY: within the pair, and no other task has these channels; writing them needs the block to itself.
        unsafe { std::slice::from_raw_parts(self.shared.from.add(range.start), range.len()) }
    }

    /// Both sides of a plane.
    fn plane(&mut self, sample: usize, channel: usize) -> Pair<'_> {
        let Channels { positions, .. } = self.channels;
        assert!(channel < self.count, "beyond the block");
        let [from, to] = self.shared.lies.map(|lies| self.range(lies, sample).start + channel * positions);
        let lengths = self.shared.lengths;
        assert!(from + positions <= lengths[0] && to + positions <= lengths[1], "beyond what is read or written");
        // SAFETY: as in `row`; the block is borrowed mutably as long as the slices live.
        unsafe {
            let to = std::slice::from_raw_parts_mut(self.shared.to.add(to), positions);
            if self.shared.in_place {
                return Pair::InPlace(to);
            }
            let from = std::slice::from_raw_parts(self.shared.from.add(from), positions);
            Pair::Apart { from, to, adds: self.shared.adds }
        }
    }

    /// The first element that is read of a channel.
    pub fn first_element(&self, channel: usize) -> f32 {
        if self.samples() == 0 { 0.0 } else { self.row(0)[(channel - self.first) * self.channels.positions] }
    }

    /// Puts `f(channel)(x)` in place of every `x`.
    pub fn map<F: Fn(f32) -> f32>(&mut self, f: impl Fn(usize) -> F) {
        run_wide(MapPlanes { block: self, f });
    }

    /// Puts `f(channel)(x, o)` in place of every `x`, where `o` is the element of `other`, which has these channels alone, at
    /// its place.
    pub fn zip<F: Fn(f32, f32) -> f32>(&mut self, other: &[f32], f: impl Fn(usize) -> F) {
        run_wide(ZipPlanes { block: self, other, f });
    }

    /// For each channel, the sums of `f(constant(channel), x, o)` over the batch and all positions, where `x` is what is read
    /// and `o` the element of `other`, which has these channels alone, at its place, or `x` without it.
    ///
    /// Where planes are small, each element of a row has a sum of its own until the end; where they are large, the sums are
    /// those of several lanes.
    pub fn sums<const N: usize>(
        &self,
        other: Option<&[f32]>,
        constant: impl Fn(usize) -> f64,
        f: impl Fn(f64, f64, f64) -> [f64; N],
        sums: &mut [[f64; N]],
    ) {
        let rows = (0..self.samples()).map(|sample| {
            let x = self.row(sample);
            (x, other.map_or(x, |other| &other[self.range(self.channels.alone(), sample)]))
        });
        let width = self.count * self.channels.positions;
        if let [sum] = sums
            && width > ELEMENTS
        {
            let constant = constant(self.first);
            *sum = run_wide(LaneSums { rows, f: |x, y| f(constant, f64::from(x), f64::from(y)) });
            return;
        }
        assert!(width <= ELEMENTS, "too many channels side by side");
        let mut constants = [0.0; ELEMENTS];
        for (lane, constants) in constants[..width].iter_mut().enumerate() {
            *constants = constant(self.first + lane / self.channels.positions);
        }
        let mut totals = [[0.0; ELEMENTS]; N];
        run_wide(ElementSums { rows, constants: &constants[..width], f, totals: &mut totals });
        for (i, sums) in sums.iter_mut().enumerate() {
            let lanes = i * self.channels.positions..(i + 1) * self.channels.positions;
            *sums = totals.each_ref().map(|totals| totals[lanes.clone()].iter().sum());
        }
    }
}

/// See [`Block::map`].
struct MapPlanes<'b, 'a, F> {
    block: &'b mut Block<'a>,
    f: F,
}

impl<F: Fn(usize) -> G, G: Fn(f32) -> f32> Wide for MapPlanes<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for sample in 0..self.block.samples() {
            for channel in 0..self.block.count {
                let f = (self.f)(self.block.first + channel);
                self.block.plane(sample, channel).map(|_, x| f(x));
            }
        }
    }
}

/// See [`Block::zip`].
struct ZipPlanes<'b, 'a, F> {
    block: &'b mut Block<'a>,
    other: &'b [f32],
    f: F,
}

impl<F: Fn(usize) -> G, G: Fn(f32, f32) -> f32> Wide for ZipPlanes<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for sample in 0..self.block.samples() {
            let other = self.other[self.block.range(self.block.channels.alone(), sample)]
                .chunks_exact(self.block.channels.positions);
            for (channel, other) in other.enumerate() {
                let f = (self.f)(self.block.first + channel);
                self.block.plane(sample, channel).zip(other, f);
            }
        }
    }
}

/// The sums of `f` over all elements of some rows, in lanes that stay in registers.
struct LaneSums<R, F> {
    rows: R,
    f: F,
}

impl<'a, const N: usize, R, F> Wide for LaneSums<R, F>
where
    R: Iterator<Item = (&'a [f32], &'a [f32])>,
    F: Fn(f32, f32) -> [f64; N],
{
    type Output = [f64; N];

    #[inline(always)]
    fn run(self) -> [f64; N] {
        let mut lanes = [[0.0; LANES]; N];
        for (x, y) in self.rows {
            let ((xs, x), (ys, y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
            for (x, y) in xs.iter().zip(ys) {
                for lane in 0..LANES {
                    let terms = (self.f)(x[lane], y[lane]);
                    lanes.iter_mut().zip(terms).for_each(|(lanes, term)| lanes[lane] += term);
                }
            }
            for (lane, (x, y)) in x.iter().zip(y).enumerate() {
                let terms = (self.f)(*x, *y);
                lanes.iter_mut().zip(terms).for_each(|(lanes, term)| lanes[lane] += term);
            }
        }
        lanes.map(|lanes| lanes.iter().sum())
    }
}

/// Adds to each element of `totals` those of `f` over all rows.
struct ElementSums<'t, R, F, const N: usize> {
    rows: R,
    constants: &'t [f64],
    f: F,
    totals: &'t mut [[f64; ELEMENTS]; N],
}

impl<'a, const N: usize, R, F> Wide for ElementSums<'_, R, F, N>
where
    R: Iterator<Item = (&'a [f32], &'a [f32])>,
    F: Fn(f64, f64, f64) -> [f64; N],
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (x, y) in self.rows {
            for (lane, ((x, y), constant)) in x.iter().zip(y).zip(self.constants).enumerate() {
                let terms = (self.f)(*constant, f64::from(*x), f64::from(*y));
                self.totals.iter_mut().zip(terms).for_each(|(totals, term)| totals[lane] += term);
            }
        }
    }
}

/// Sums that are kept side by side for planes that are small, and lanes for large ones.
const ELEMENTS: usize = 512;
const LANES: usize = 32;
