//! Pooling: maxima and means over windows, sliding or adaptive.
//!
//! A maximum leaves for backward its place within its window, the first where several are equal, as PyTorch has it.

use plimsoll_plan::layers::pool::{AdaptivePool, Pool, Reduction};
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::schedule::Role;

use super::parallel;
use super::step::Step;
use super::vector::{Wide, run_wide, wide};
use crate::element::Element;

/// The taps of one window along one axis.
#[derive(Clone, Copy)]
struct Span {
    /// The first tap on the input, and one past the last.
    first: usize,
    end: usize,
    /// The place of tap 0, which may be on the padding.
    start: isize,
    /// Distance between taps.
    dilation: usize,
    /// Taps of the whole window, which numbers them.
    taps: usize,
    /// What the window's extent counts as in a mean.
    counted: usize,
}

impl Span {
    /// Where a tap lies.
    fn at(&self, tap: usize) -> usize {
        (self.start + (tap * self.dilation) as isize) as usize
    }
}

/// Where the windows lie.
#[derive(Clone, Copy)]
enum Windows<'a> {
    Sliding { window: &'a Window, count_include_pad: bool },
    Adaptive,
}

/// Pooling from an input plane to an output plane.
#[derive(Clone, Copy)]
struct Planes<'a> {
    windows: Windows<'a>,
    input: [usize; 2],
    output: [usize; 2],
}

impl<'a> Planes<'a> {
    fn new(windows: Windows<'a>, step: &Step) -> Self {
        let plane = |shape: &[u64]| [shape[1] as usize, shape[2] as usize];
        Planes { windows, input: plane(&step.inputs()[0].shape.0), output: plane(&step.output().shape.0) }
    }

    fn pixels(&self) -> usize {
        self.input[0] * self.input[1]
    }

    fn positions(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// The window of an output along an axis.
    fn span(&self, axis: usize, output: usize) -> Span {
        let extent = self.input[axis];
        match self.windows {
            Windows::Adaptive => {
                let start = output * extent / self.output[axis];
                let end = ((output + 1) * extent).div_ceil(self.output[axis]);
                let taps = end - start;
                Span { first: 0, end: taps, start: start as isize, dilation: 1, taps, counted: taps }
            }
            Windows::Sliding { window, count_include_pad } => {
                let [taps, stride, padding, dilation] =
                    [window.kernel, window.stride, window.padding, window.dilation].map(|x| x[axis] as usize);
                let start = (output * stride) as isize - padding as isize;
                let first = (-start).max(0).cast_unsigned().div_ceil(dilation).min(taps);
                let end = (extent as isize - start).max(0).cast_unsigned().div_ceil(dilation).min(taps).max(first);
                // Padding counts, but not what rounding up (`ceil_mode`) adds beyond it.
                let padded = (start + taps as isize).min((extent + padding) as isize) - start;
                let counted = if count_include_pad { padded.max(0) as usize } else { end - first };
                Span { first, end, start, dilation, taps, counted }
            }
        }
    }

    /// Calls `f` with each output's place and window.
    fn for_each(&self, mut f: impl FnMut(usize, Span, Span)) {
        for y in 0..self.output[0] {
            let rows = self.span(0, y);
            for x in 0..self.output[1] {
                f(y * self.output[1] + x, rows, self.span(1, x));
            }
        }
    }

    /// The maxima of a plane; where there is an index, the place of each within its window.
    fn max<I: Index>(&self, input: &[f32], output: &mut [f32], mut index: Option<&mut [I]>) {
        if self.is_quarters() {
            return wide(|| self.max_of_quarters(input, output, index));
        }
        // Inference, which keeps no index, has the plain loop.
        if let (Windows::Sliding { window, .. }, Some(index)) = (self.windows, &mut index) {
            return run_wide(MaxRows { planes: *self, window, input, output, index });
        }
        self.for_each(|position, rows, columns| {
            let (mut max, mut place) = (f32::NEG_INFINITY, rows.first * columns.taps + columns.first);
            for ky in rows.first..rows.end {
                let row = &input[rows.at(ky) * self.input[1]..][..self.input[1]];
                for kx in columns.first..columns.end {
                    let x = row[columns.at(kx)];
                    if x > max || x.is_nan() {
                        (max, place) = (x, ky * columns.taps + kx);
                    }
                }
            }
            output[position] = max;
            if let Some(index) = &mut index {
                index[position] = I::new(place);
            }
        });
    }

    /// Whether the windows are squares of 2 x 2, side by side and whole.
    fn is_quarters(&self) -> bool {
        let Windows::Sliding { window: Window { kernel, stride, padding, dilation }, .. } = self.windows else {
            return false;
        };
        [*kernel, *stride] == [[2, 2]; 2]
            && (*padding, *dilation) == ([0, 0], [1, 1])
            && (0..2).all(|axis| self.output[axis] * 2 <= self.input[axis])
    }

    #[inline(always)]
    fn max_of_quarters<I: Index>(&self, input: &[f32], output: &mut [f32], mut index: Option<&mut [I]>) {
        let [width, size] = [self.input[1], self.output[1]];
        for (y, (rows, output)) in input.chunks_exact(2 * width).zip(output.chunks_exact_mut(size)).enumerate() {
            let (upper, lower) = (rows[..width].as_chunks::<2>().0, rows[width..].as_chunks::<2>().0);
            let windows = upper.iter().zip(lower).map(|([a, b], [c, d])| {
                let larger = |(max, place): (f32, u8), (x, tap): (f32, u8)| {
                    if x > max || x.is_nan() { (x, tap) } else { (max, place) }
                };
                [(*b, 1), (*c, 2), (*d, 3)].into_iter().fold((*a, 0), larger)
            });
            match &mut index {
                None => output.iter_mut().zip(windows).for_each(|(output, (max, _))| *output = max),
                Some(index) => {
                    let outputs = output.iter_mut().zip(&mut index[y * size..][..size]);
                    outputs.zip(windows).for_each(|((output, index), (max, place))| {
                        (*output, *index) = (max, I::new(usize::from(place)));
                    });
                }
            }
        }
    }

    #[inline(always)]
    fn gradient_of_quarters<I: Index>(&self, dy: &[f32], index: &[I], dx: &mut [f32]) {
        let [width, size] = [self.input[1], self.output[1]];
        let windows = dy.chunks_exact(size).zip(index.chunks_exact(size));
        for (rows, (dy, index)) in dx.chunks_exact_mut(2 * width).zip(windows) {
            let (upper, lower) = rows.split_at_mut(width);
            let (upper, lower) = (upper.as_chunks_mut::<2>().0, lower.as_chunks_mut::<2>().0);
            for (([a, b], [c, d]), (dy, index)) in upper.iter_mut().zip(lower).zip(dy.iter().zip(index)) {
                for (tap, dx) in [a, b, c, d].into_iter().enumerate() {
                    *dx += if index.get() == tap { *dy } else { 0.0 };
                }
            }
        }
    }

    /// The maxima of a row of windows, which lie in a row. A tap after the other, for all windows that have it.
    #[inline(always)]
    fn max_row<I: Index>(
        &self,
        window: &Window,
        stride: usize,
        rows: Span,
        input: &[f32],
        output: &mut [f32],
        index: &mut [I],
    ) {
        let [taps, padding, dilation] = [window.kernel, window.padding, window.dilation].map(|x| x[1] as usize);
        output.fill(f32::NEG_INFINITY);
        for ky in rows.first..rows.end {
            let row = &input[rows.at(ky) * self.input[1]..][..self.input[1]];
            // Windows begin to have a tap at smaller places than the tap before.
            let mut before = self.output[1];
            for kx in 0..taps {
                let offset = kx * dilation;
                let first = padding.saturating_sub(offset).div_ceil(stride).min(self.output[1]);
                let end = (self.input[1] + padding).saturating_sub(offset).div_ceil(stride).min(self.output[1]);
                if first >= end {
                    continue;
                }
                let row = &row[first * stride + offset - padding..];
                let place = I::new(ky * taps + kx);
                // A window's first tap is its maximum until now, even if it is minus infinity.
                if ky == rows.first {
                    index[first..before.clamp(first, end)].fill(place);
                }
                before = first;
                take_larger(row, stride, &mut output[first..end], &mut index[first..end], place);
            }
        }
    }

    /// The means of a plane.
    fn mean(&self, input: &[f32], output: &mut [f32]) {
        self.for_each(|position, rows, columns| {
            let mut sum = 0.0;
            for ky in rows.first..rows.end {
                let row = &input[rows.at(ky) * self.input[1]..][..self.input[1]];
                if columns.first < columns.end {
                    sum += row[columns.at(columns.first)..][..columns.end - columns.first].iter().sum::<f32>();
                }
            }
            output[position] = sum / (rows.counted * columns.counted).max(1) as f32;
        });
    }

    fn mean_gradient(&self, dy: &[f32], dx: &mut [f32]) {
        self.for_each(|position, rows, columns| {
            let share = dy[position] / (rows.counted * columns.counted).max(1) as f32;
            for ky in rows.first..rows.end {
                let row = &mut dx[rows.at(ky) * self.input[1]..][..self.input[1]];
                if columns.first < columns.end {
                    let row = &mut row[columns.at(columns.first)..][..columns.end - columns.first];
                    row.iter_mut().for_each(|x| *x += share);
                }
            }
        });
    }
}

/// The maxima of a plane, a row of windows after the other.
struct MaxRows<'a, I> {
    planes: Planes<'a>,
    window: &'a Window,
    input: &'a [f32],
    output: &'a mut [f32],
    index: &'a mut [I],
}

impl<I: Index> Wide for MaxRows<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let MaxRows { planes, window, input, output, index } = self;
        let width = planes.output[1];
        let rows = output.chunks_exact_mut(width).zip(index.chunks_exact_mut(width));
        for (y, (output, index)) in rows.enumerate() {
            let rows = planes.span(0, y);
            match window.stride[1] {
                1 => planes.max_row(window, 1, rows, input, output, index),
                2 => planes.max_row(window, 2, rows, input, output, index),
                stride => planes.max_row(window, stride as usize, rows, input, output, index),
            }
        }
    }
}

/// Takes those elements, `stride` apart, that are larger than the outputs, or NaN; and `place` for their index.
#[inline(always)]
fn take_larger<I: Index>(row: &[f32], stride: usize, output: &mut [f32], index: &mut [I], place: I) {
    let take = |((max, index), x): ((&mut f32, &mut I), f32)| {
        let is_taken = x > *max || x.is_nan();
        *max = if is_taken { x } else { *max };
        *index = if is_taken { place } else { *index };
    };
    match stride {
        1 => output.iter_mut().zip(index).zip(row.iter().copied()).for_each(take),
        2 => {
            // The last one may be without a neighbour.
            let (pairs, last) = row.as_chunks::<2>();
            let whole = pairs.len().min(output.len());
            let ((output, outputs), (index, indices)) = (output.split_at_mut(whole), index.split_at_mut(whole));
            output.iter_mut().zip(index).zip(pairs.iter().map(|pair| pair[0])).for_each(take);
            outputs.iter_mut().zip(indices).zip(last.iter().copied()).for_each(take);
        }
        _ => output.iter_mut().zip(index).zip(row.iter().copied().step_by(stride)).for_each(take),
    }
}

/// A number of a tap.
trait Index: Element {
    fn new(index: usize) -> Self;
    fn get(self) -> usize;
}

impl Index for u8 {
    fn new(index: usize) -> Self {
        index as u8
    }

    fn get(self) -> usize {
        usize::from(self)
    }
}

impl Index for i32 {
    fn new(index: usize) -> Self {
        index as i32
    }

    fn get(self) -> usize {
        self as usize
    }
}

/// `maxpool2d`, `avgpool2d`.
pub fn forward(layer: &Pool, step: &Step) {
    match layer.reduction {
        Reduction::Max => max(Planes::new(sliding(layer), step), step),
        Reduction::Mean { .. } => mean(Planes::new(sliding(layer), step), step),
    }
}

/// The input's gradient of `maxpool2d`, `avgpool2d`.
pub fn backward(layer: &Pool, step: &Step) {
    match layer.reduction {
        Reduction::Max => max_gradient(Planes::new(sliding(layer), step), step),
        Reduction::Mean { .. } => mean_gradient(Planes::new(sliding(layer), step), step),
    }
}

/// `adaptive_maxpool2d`, `adaptive_avgpool2d`.
pub fn adaptive_forward(layer: &AdaptivePool, step: &Step) {
    let planes = Planes::new(Windows::Adaptive, step);
    if layer.max { max(planes, step) } else { mean(planes, step) }
}

/// The input's gradient of `adaptive_maxpool2d`, `adaptive_avgpool2d`.
pub fn adaptive_backward(layer: &AdaptivePool, step: &Step) {
    let planes = Planes::new(Windows::Adaptive, step);
    if layer.max { max_gradient(planes, step) } else { mean_gradient(planes, step) }
}

fn sliding(layer: &Pool) -> Windows<'_> {
    let count_include_pad = matches!(layer.reduction, Reduction::Mean { count_include_pad: true });
    Windows::Sliding { window: &layer.window, count_include_pad }
}

fn max(planes: Planes, step: &Step) {
    let (parts, y) = (step.read_image(), step.write(Role::Output));
    let (image, channels) = (parts.image(), channels(step));
    let x = |i| image.plane(i, channels, planes.pixels());
    let index = Role::Saved(0);
    match step.has(index).then(|| step.bytes(index) / y.len()) {
        None => parallel::chunks(y, planes.positions(), |i, y| planes.max::<u8>(x(i), y, None)),
        Some(1) => indexed_max::<u8>(planes, x, y, step.write(index)),
        Some(_) => indexed_max::<i32>(planes, x, y, step.write(index)),
    }
}

fn indexed_max<'a, I: Index>(
    planes: Planes,
    x: impl Fn(usize) -> &'a [f32] + Sync + Send,
    y: &mut [f32],
    index: &mut [I],
) {
    let size = planes.positions();
    parallel::chunks2((y, size), (index, size), |i, y, index| planes.max(x(i), y, Some(index)));
}

/// Planes of a sample.
fn channels(step: &Step) -> usize {
    step.output().shape.0[0] as usize
}

fn mean(planes: Planes, step: &Step) {
    let (parts, y) = (step.read_image(), step.write(Role::Output));
    let (image, channels) = (parts.image(), channels(step));
    parallel::chunks(y, planes.positions(), |i, y| planes.mean(image.plane(i, channels, planes.pixels()), y));
}

fn max_gradient(planes: Planes, step: &Step) {
    let dy = step.read(Role::OutputGradient);
    match step.bytes(Role::Saved(0)) / dy.len() {
        1 => indexed_max_gradient::<u8>(planes, dy, step),
        _ => indexed_max_gradient::<i32>(planes, dy, step),
    }
}

fn indexed_max_gradient<I: Index>(planes: Planes, dy: &[f32], step: &Step) {
    let index: &[I] = step.read(Role::Saved(0));
    each_gradient(planes, step, |i, dx| {
        let (dy, index) = (plane(dy, i, planes.positions()), plane(index, i, planes.positions()));
        if planes.is_quarters() {
            return wide(|| planes.gradient_of_quarters(dy, index, dx));
        }
        planes.for_each(|position, rows, columns| {
            // A dilated window may have all of its taps on the padding.
            if rows.first >= rows.end || columns.first >= columns.end {
                return;
            }
            let (ky, kx) = (index[position].get() / columns.taps, index[position].get() % columns.taps);
            dx[rows.at(ky) * planes.input[1] + columns.at(kx)] += dy[position];
        });
    });
}

fn mean_gradient(planes: Planes, step: &Step) {
    let dy = step.read(Role::OutputGradient);
    each_gradient(planes, step, |i, dx| planes.mean_gradient(plane(dy, i, planes.positions()), dx));
}

/// Calls `work` with every plane of the input's gradient, or of its parts' gradients, to be added to, and with its number.
fn each_gradient(planes: Planes, step: &Step, work: impl Fn(usize, &mut [f32]) + Sync + Send) {
    let (channels, mut first) = (channels(step), 0);
    for (part, number) in step.parts().iter().zip(0..) {
        let (role, own) = (Role::InputGradient(number), part.shape.0[0] as usize);
        if let Some(dx) = step.write_if(role) {
            let adds = step.adds(role);
            parallel::chunks(dx, planes.pixels(), |i, dx| {
                if !adds {
                    dx.fill(0.0);
                }
                work(i / own * channels + first + i % own, dx);
            });
        }
        first += own;
    }
}

/// One of many planes of a size.
fn plane<T>(planes: &[T], index: usize, size: usize) -> &[T] {
    &planes[index * size..][..size]
}
