//! Which results a correlation makes, and where in its source the taps of each are.

use std::ops::Range;

use super::convolution::Geometry;

/// One axis of a correlation: which results it makes, and where in the source each tap of each result is.
#[derive(Clone, Copy)]
pub struct Axis {
    /// The results: `first`, `first + stride` and so on.
    pub first: usize,
    pub stride: usize,
    pub count: usize,
    /// The taps: `tap`, `tap + period` and so on.
    pub tap: usize,
    pub period: usize,
    pub taps: usize,
    /// Tap `j` of result `i` is at `i * step + offset + j * shift`; outside of `0..extent` there are zeros.
    pub step: usize,
    pub offset: isize,
    pub shift: isize,
    pub extent: usize,
}

impl Axis {
    /// From the image to the map.
    pub fn forward(g: &Geometry, axis: usize) -> Axis {
        let all = Axis {
            first: 0,
            stride: 1,
            count: g.map[axis],
            tap: 0,
            period: 1,
            taps: g.kernel[axis],
            step: g.stride[axis],
            offset: -g.padding[axis].cast_signed(),
            shift: g.dilation[axis].cast_signed(),
            extent: g.image[axis],
        };
        all.trimmed()
    }

    /// From the map to those pixels of the image whose places leave `phase` by the stride. A tap is at a pixel if it is a
    /// whole number of strides away from the first position.
    pub fn backward(g: &Geometry, axis: usize, phase: usize) -> Axis {
        let (stride, dilation) = (g.stride[axis], g.dilation[axis]);
        let start = phase + g.padding[axis];
        let away = |tap: usize| start.cast_signed() - (tap * dilation).cast_signed();
        let is_at = |tap: usize| away(tap) % stride.cast_signed() == 0;
        let period = (1..=stride).find(|taps| (taps * dilation).is_multiple_of(stride)).unwrap_or(stride);
        let tap = (0..period.min(g.kernel[axis])).find(|tap| is_at(*tap));
        let all = Axis {
            first: phase,
            stride,
            count: g.image[axis].saturating_sub(phase).div_ceil(stride),
            tap: tap.unwrap_or(0),
            period,
            taps: tap.map_or(0, |tap| (g.kernel[axis] - tap).div_ceil(period)),
            step: 1,
            offset: tap.map_or(0, away) / stride.cast_signed(),
            shift: -((period * dilation / stride).cast_signed()),
            extent: g.map[axis],
        };
        all.trimmed()
    }

    /// Without the first and last taps that are on the padding everywhere.
    fn trimmed(self) -> Axis {
        let is_alive = |tap: &usize| !self.inside(*tap).is_empty();
        let Some(first) = (0..self.taps).find(is_alive) else {
            return Axis { taps: 0, ..self };
        };
        let last = (first..self.taps).rev().find(is_alive).unwrap_or(first);
        Axis {
            tap: self.tap + first * self.period,
            taps: last + 1 - first,
            offset: self.offset + first.cast_signed() * self.shift,
            ..self
        }
    }

    /// Where tap `j` of result 0 is.
    pub fn start(&self, tap: usize) -> isize {
        self.offset + tap.cast_signed() * self.shift
    }

    /// The results of which tap `j` is on the source.
    pub fn inside(&self, tap: usize) -> Range<usize> {
        let start = self.start(tap);
        let steps = |distance: isize| {
            let distance = distance.max(0).cast_unsigned();
            // Most steps are 1, and a division takes long.
            if self.step == 1 { distance } else { distance.div_ceil(self.step) }
        };
        let first = steps(-start);
        let end = steps(self.extent.cast_signed() - start).min(self.count);
        first.min(end)..end
    }
}

/// Both axes of a correlation, and how many samples it is over. Results are counted row by row, sample after sample.
#[derive(Clone, Copy)]
pub struct Grid {
    pub y: Axis,
    pub x: Axis,
    pub samples: usize,
}

/// Some neighbouring results in one row.
#[derive(Clone, Copy, Default)]
pub struct Run {
    pub sample: usize,
    pub y: usize,
    /// The first.
    pub x: usize,
    pub length: usize,
}

impl Grid {
    /// From the image to the map.
    pub fn forward(g: &Geometry, samples: usize) -> Grid {
        Grid { y: Axis::forward(g, 0), x: Axis::forward(g, 1), samples }
    }

    /// From the map to a phase of the image.
    pub fn backward(g: &Geometry, phase: [usize; 2], samples: usize) -> Grid {
        Grid { y: Axis::backward(g, 0, phase[0]), x: Axis::backward(g, 1, phase[1]), samples }
    }

    pub fn results(&self) -> usize {
        self.samples * self.y.count * self.x.count
    }

    /// Taps that are not left out.
    pub fn taps(&self) -> usize {
        self.y.taps * self.x.taps
    }

    /// The tap of the kernel that is number `tap` here.
    pub fn tap(&self, tap: usize, width: usize) -> usize {
        let (y, x) = (tap / self.x.taps, tap % self.x.taps);
        (self.y.tap + y * self.y.period) * width + self.x.tap + x * self.x.period
    }

    /// The runs that make up a range of results.
    pub fn runs(&self, results: Range<usize>) -> impl Iterator<Item = Run> {
        let (height, width) = (self.y.count, self.x.count);
        let (row, mut x) = (results.start / width, results.start % width);
        let (mut sample, mut y) = (row / height, row % height);
        let mut left = results.len();
        std::iter::from_fn(move || {
            let run = Run { sample, y, x, length: (width - x).min(left) };
            left -= run.length;
            x = 0;
            y += 1;
            if y == height {
                (sample, y) = (sample + 1, 0);
            }
            (run.length > 0).then_some(run)
        })
    }
}
