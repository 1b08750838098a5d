//! Pooling: maxima and means over windows, sliding or adaptive.
//!
//! A maximum leaves for backward its place within its window, the first where several are equal, as PyTorch has it.

mod bands;

use plimsoll_plan::layers::pool::{AdaptivePool, Pool, Reduction};
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::schedule::Role;

use super::parallel;
use super::step::Step;
use super::vector::{run_wide, wide};
use crate::element::Element;
use bands::{Bands, MaxOfBands, Room};

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

    /// Outputs that one task handles: those of some planes.
    fn task(&self) -> usize {
        (parallel::CHUNK / self.positions()).max(1) * self.positions()
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
    fn max<I: Index>(&self, input: &[f32], output: &mut [f32], mut index: Option<&mut [I]>, room: &mut Room) {
        if self.is_quarters() {
            return wide(|| self.max_of_quarters(input, output, index));
        }
        if let Windows::Sliding { window, .. } = self.windows
            && let Some(bands) = Bands::of(self, window)
        {
            return run_wide(MaxOfBands { bands, input, output, index, room });
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

    /// The first tap on the input, where no tap was larger than minus infinity: it is the maximum then.
    #[cold]
    fn put_first<I: Index>(&self, y: usize, places: &[i32], index: &mut [I]) {
        let rows = self.span(0, y);
        for (x, (index, place)) in index.iter_mut().zip(places).enumerate() {
            if *place < 0 {
                let columns = self.span(1, x);
                *index = I::new(rows.first * columns.taps + columns.first);
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
        None => {
            let size = planes.positions();
            parallel::chunks(y, planes.task(), |i, y| {
                let (first, mut room) = (i * planes.task() / size, Room::new());
                for (i, y) in (first..).zip(y.chunks_exact_mut(size)) {
                    planes.max::<u8>(x(i), y, None, &mut room);
                }
            });
        }
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
    let (size, task) = (planes.positions(), planes.task());
    parallel::chunks2((y, task), (index, task), |i, y, index| {
        let (first, mut room) = (i * task / size, Room::new());
        for ((i, y), index) in (first..).zip(y.chunks_exact_mut(size)).zip(index.chunks_exact_mut(size)) {
            planes.max(x(i), y, Some(index), &mut room);
        }
    });
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

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_oneof, proptest};

    use super::*;

    /// The definition: the taps of a window in order; the first of equal ones counts, and a NaN above all before it.
    fn maximum(planes: &Planes, window: &Window, input: &[f32], [y, x]: [usize; 2]) -> (f32, Option<usize>) {
        let mut found: (f32, Option<usize>) = (f32::NEG_INFINITY, None);
        for ky in 0..window.kernel[0] {
            for kx in 0..window.kernel[1] {
                let at = |axis: usize, output: usize, tap: u64| {
                    let place = (output as u64 * window.stride[axis] + tap * window.dilation[axis]) as usize;
                    place.checked_sub(window.padding[axis] as usize).filter(|place| *place < planes.input[axis])
                };
                if let (Some(row), Some(column)) = (at(0, y, ky), at(1, x, kx)) {
                    let value = input[row * planes.input[1] + column];
                    if found.1.is_none() || value > found.0 || value.is_nan() {
                        found = (value, Some((ky * window.kernel[1] + kx) as usize));
                    }
                }
            }
        }
        found
    }

    fn check<I: Index>(window: Window, input: [usize; 2], ceil: bool) {
        let output = [0, 1].map(|axis| {
            let [kernel, stride, padding, dilation] =
                [window.kernel, window.stride, window.padding, window.dilation].map(|pair| pair[axis] as usize);
            let steps = input[axis] + 2 * padding - dilation * (kernel - 1) - 1;
            if ceil { steps.div_ceil(stride) + 1 } else { steps / stride + 1 }
        });
        let planes = Planes { windows: Windows::Sliding { window: &window, count_include_pad: true }, input, output };
        let mut room = Room::new();
        for seed in 0..if cfg!(miri) { 1 } else { 3 } {
            // Few values, so that there are equal ones; a few NaNs; and more and more of the least.
            let value = |i: usize| match (i * 7919 + seed * 31) % 101 {
                0 => f32::NAN,
                r if r < 40 * seed + 3 => f32::NEG_INFINITY,
                r => (r % 7) as f32 - 3.0,
            };
            let x: Vec<f32> = (0..planes.pixels()).map(value).collect();
            let (mut y, mut index) = (vec![0.5; planes.positions()], vec![I::new(77); planes.positions()]);
            planes.max(&x, &mut y, Some(&mut index), &mut room);
            let mut alone = vec![0.5; planes.positions()];
            planes.max::<I>(&x, &mut alone, None, &mut room);
            for i in 0..y.len() {
                let (max, place) = maximum(&planes, &window, &x, [i / output[1], i % output[1]]);
                assert_eq!([y[i], alone[i]].map(f32::to_bits), [max.to_bits(); 2], "{window:?} {input:?}, output {i}");
                // A window that is all on the padding has no place that matters.
                assert!(place.is_none_or(|place| place == index[i].get()), "{window:?} {input:?}, index {i}");
            }
        }
    }

    #[test]
    fn maxima_and_their_places() {
        let window = |kernel, stride, padding, dilation| Window {
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: [padding; 2],
            dilation: [dilation; 2],
        };
        let uneven = Window { kernel: [2, 5], stride: [3, 2], padding: [1, 2], dilation: [2, 1] };
        let windows = [
            window(3, 2, 1, 1),
            window(2, 2, 0, 1),
            window(3, 1, 1, 1),
            window(3, 3, 0, 1),
            window(2, 1, 1, 3),
            window(3, 2, 0, 1),
            uneven,
        ];
        // The last but one takes several bands; of the last, a row of windows has no room.
        let inputs: &[[usize; 2]] =
            if cfg!(miri) { &[[5, 6]] } else { &[[5, 6], [8, 7], [16, 16], [7, 50], [90, 75], [6, 3000]] };
        for window in windows.into_iter().skip(if cfg!(miri) { 5 } else { 0 }) {
            for input in inputs {
                for ceil in [false, true] {
                    check::<u8>(window, *input, ceil);
                    check::<i32>(window, *input, ceil);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 300 }, failure_persistence: None, ..Default::default() })]

        /// The same for any window: bands of one row and of many, whole planes, and a stride that leaves elements out.
        #[test]
        fn maxima_of_any_window(
            (kernel, stride) in ([1..6u64, 1..6u64], [1..6u64, 1..6u64]),
            (padding, dilation) in ([0..3u64, 0..3u64], [1..4u64, 1..4u64]),
            input in prop_oneof![[1..40usize, 1..40usize], [1..4usize, 40..2000usize], [40..300usize, 1..12usize]],
            ceil in any::<bool>(),
        ) {
            // At most half of the window is padding.
            let padding = [0, 1].map(|axis| padding[axis].min(kernel[axis] / 2));
            let window = Window { kernel, stride, padding, dilation };
            let fits = |axis: usize| input[axis] as u64 + 2 * padding[axis] > dilation[axis] * (kernel[axis] - 1);
            if fits(0) && fits(1) {
                check::<u8>(window, input, ceil);
                check::<i32>(window, input, ceil);
            }
        }
    }
}
