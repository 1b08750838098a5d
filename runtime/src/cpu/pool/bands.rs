//! Maxima over sliding windows, in whole vectors.

use plimsoll_plan::layers::window::Window;

use super::super::vector::Wide;
use super::{Index, Planes};

/// Elements of a band.
const ROOM: usize = 4096;

const LANES: usize = 16;

/// Where a band is laid out, with its maxima and their places.
pub struct Room {
    source: [f32; ROOM],
    max: [f32; ROOM],
    place: [i32; ROOM],
}

impl Room {
    pub fn new() -> Room {
        Room { source: [0.0; ROOM], max: [0.0; ROOM], place: [0; ROOM] }
    }
}

/// A plane in bands of some rows of windows, which are laid out in the room.
///
/// With a stride, neighbouring windows have a tap at places that are apart. So places are sorted into phases, those that
/// leave the same by the stride, and padding is laid down as minus infinity. Then a tap of all windows of the band is one
/// stretch of the room, whatever the stride and however short the rows.
pub struct Bands<'a> {
    planes: &'a Planes<'a>,
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    /// Rows of windows.
    height: usize,
    /// Rows of a phase, and elements of each.
    phase: [usize; 2],
}

impl<'a> Bands<'a> {
    /// None where not even one row of windows has room.
    pub fn of(planes: &'a Planes, window: &Window) -> Option<Bands<'a>> {
        let [kernel, stride, padding, dilation] =
            [window.kernel, window.stride, window.padding, window.dilation].map(|pair| pair.map(|x| x as usize));
        let phase = |axis: usize, windows: usize| windows + (kernel[axis] - 1) * dilation[axis] / stride[axis];
        let width = phase(1, planes.output[1]);
        // The last stretch is read in whole vectors.
        let rows = (ROOM - LANES) / (stride[0] * stride[1] * width);
        let height = (rows + 1).saturating_sub(phase(0, 1)).min(planes.output[0]);
        (height > 0).then(|| Bands {
            planes,
            kernel,
            stride,
            padding,
            dilation,
            height,
            phase: [phase(0, height), width],
        })
    }

    /// Where the phase begins that an offset from a window's corner lies in, and how far from there the offset is.
    #[inline(always)]
    fn at(&self, offset: [usize; 2]) -> usize {
        let [rows, width] = self.phase;
        let phase = offset[0] % self.stride[0] * self.stride[1] + offset[1] % self.stride[1];
        (phase * rows + offset[0] / self.stride[0]) * width + offset[1] / self.stride[1]
    }

    /// Lays out the rows of the input that the windows from row `first` on have.
    #[inline(always)]
    fn lay_out(&self, first: usize, input: &[f32], source: &mut [f32; ROOM]) {
        let ([rows, width], stride) = (self.phase, self.stride);
        let extent = self.planes.input[1];
        let mut left = &mut source[..stride[0] * stride[1] * rows * width];
        left.fill(f32::NEG_INFINITY);
        for y in 0..stride[0] {
            for x in 0..stride[1] {
                let phase = left.split_off_mut(..rows * width).expect("there are so many phases");
                // The place of the phase's first element on the input, and among those of the phase.
                let start = (x + stride[1] - self.padding[1] % stride[1]) % stride[1];
                let column = (start + self.padding[1]) / stride[1];
                for (row, to) in phase.chunks_exact_mut(width).enumerate() {
                    let row = ((first + row) * stride[0] + y).checked_sub(self.padding[0]);
                    let Some(row) = row.filter(|row| *row < self.planes.input[0]) else { continue };
                    let from = &input[row * extent..][..extent];
                    if let (Some(from), Some(to)) = (from.get(start..), to.get_mut(column..)) {
                        copy_apart(from, stride[1], to);
                    }
                }
            }
        }
    }

    /// The maxima of the windows of some rows from `first` on; in the room they have the phases' width.
    #[inline(always)]
    fn max(&self, first: usize, rows: usize, input: &[f32], room: &mut Room) {
        self.lay_out(first, input, &mut room.source);
        let length = ((rows - 1) * self.phase[1] + self.planes.output[1]).next_multiple_of(LANES);
        let (max, place) = (&mut room.max[..length], &mut room.place[..length]);
        max.fill(f32::NEG_INFINITY);
        place.fill(-1);
        for ky in 0..self.kernel[0] {
            for kx in 0..self.kernel[1] {
                let tap = (ky * self.kernel[1] + kx) as i32;
                let source = &room.source[self.at([ky * self.dilation[0], kx * self.dilation[1]])..][..length];
                take_larger(max, place, source, tap);
            }
        }
    }
}

/// Copies elements that are `step` apart, as many as there are and have a place.
#[inline(always)]
fn copy_apart(from: &[f32], step: usize, to: &mut [f32]) {
    match step {
        1 => {
            let length = from.len().min(to.len());
            to[..length].copy_from_slice(&from[..length]);
        }
        2 => {
            let (eights, rest) = from.as_chunks::<16>();
            let whole = eights.len().min(to.len() / 8);
            let (to, to_rest) = to.split_at_mut(whole * 8);
            for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(eights) {
                *to = std::array::from_fn(|i| from[2 * i]);
            }
            let rest = if whole < eights.len() { &from[whole * 16..] } else { rest };
            to_rest.iter_mut().zip(rest.iter().step_by(2)).for_each(|(to, from)| *to = *from);
        }
        _ => to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, from)| *to = *from),
    }
}

/// Takes those elements that are larger than the maxima, or NaN, and their place.
#[inline(always)]
fn take_larger(max: &mut [f32], place: &mut [i32], source: &[f32], tap: i32) {
    for ((max, place), x) in max.iter_mut().zip(place).zip(source) {
        let is_taken = (*x > *max) | x.is_nan();
        *max = if is_taken { *x } else { *max };
        *place = if is_taken { tap } else { *place };
    }
}

/// The maxima of a plane in bands.
pub struct MaxOfBands<'a, I> {
    pub bands: Bands<'a>,
    pub input: &'a [f32],
    pub output: &'a mut [f32],
    pub index: Option<&'a mut [I]>,
    pub room: &'a mut Room,
}

impl<I: Index> Wide for MaxOfBands<'_, I> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let MaxOfBands { bands, input, output, mut index, room } = self;
        let width = bands.planes.output[1];
        for (band, output) in output.chunks_mut(bands.height * width).enumerate() {
            let first = band * bands.height;
            bands.max(first, output.len() / width, input, room);
            for (i, output) in output.chunks_exact_mut(width).enumerate() {
                let start = i * bands.phase[1];
                output.copy_from_slice(&room.max[start..][..width]);
                let Some(index) = &mut index else { continue };
                let y = first + i;
                let index = &mut index[y * width..][..width];
                let places = &room.place[start..][..width];
                index.iter_mut().zip(places).for_each(|(index, place)| *index = I::new(*place as usize));
                if places.iter().fold(0, |least, place| least.min(*place)) < 0 {
                    bands.planes.put_first(y, places, index);
                }
            }
        }
    }
}
