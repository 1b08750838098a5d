//! Convolutions whose groups have one channel each ("depthwise"): plain loops along the rows of the image.

use super::bounds::Bounds;
use super::convolution::Geometry;
use super::product::Start;
use super::{parallel, vector};

/// A run of neighbouring positions in one row of the map.
#[derive(Clone, Copy)]
struct Run {
    y: usize,
    x: usize,
    length: usize,
}

/// Adds a run of values, times a factor, to the pixels under a tap.
fn spread_run(g: &Geometry, tap: usize, run: Run, values: &[f32], factor: f32, pixels: &mut [f32]) {
    let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
    let inside = g.inside(1, kx);
    let (first, end) = (inside.start.max(run.x), inside.end.min(run.x + run.length));
    if !g.inside(0, ky).contains(&run.y) || first >= end {
        return;
    }
    let pixels = &mut pixels[g.at(0, run.y, ky) * g.image[1]..][..g.image[1]][g.at(1, first, kx)..];
    let values = &values[first - run.x..end - run.x];
    if g.stride[1] == 1 {
        pixels.iter_mut().zip(values).for_each(|(to, x)| *to += factor * x);
    } else {
        pixels.iter_mut().step_by(g.stride[1]).zip(values).for_each(|(to, x)| *to += factor * x);
    }
}

/// As [`correlate`](super::convolution::correlate).
pub fn correlate(g: &Geometry, image: &[f32], kernel: &[f32], map: &mut [f32], start: Start, bounds: Bounds) {
    parallel::chunks(map, g.positions(), |i, map| {
        start.lay(map, i % (g.groups * g.maps));
        let channel = i % (g.groups * g.maps);
        let pixels = &image[(i / (g.groups * g.maps) * g.groups + channel / g.maps) * g.pixels()..][..g.pixels()];
        for (tap, factor) in kernel[channel * g.taps()..][..g.taps()].iter().enumerate() {
            let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
            let inside = g.inside(1, kx);
            if inside.is_empty() {
                continue;
            }
            for y in g.inside(0, ky) {
                let from = &pixels[g.at(0, y, ky) * g.image[1]..][..g.image[1]][g.at(1, inside.start, kx)..];
                let to = &mut map[y * g.map[1]..][inside.clone()];
                if g.stride[1] == 1 {
                    to.iter_mut().zip(from).for_each(|(to, x)| *to += factor * x);
                } else {
                    to.iter_mut().zip(from.iter().step_by(g.stride[1])).for_each(|(to, x)| *to += factor * x);
                }
            }
        }
        bounds.clamp(map);
    });
}

/// As [`spread`](super::convolution::spread).
pub fn spread(g: &Geometry, map: &[f32], kernel: &[f32], image: &mut [f32], start: Start) {
    parallel::chunks(image, g.pixels(), |i, pixels| {
        start.lay(pixels, i % g.groups);
        let (sample, group) = (i / g.groups, i % g.groups);
        for channel in group * g.maps..(group + 1) * g.maps {
            let map = &map[(sample * g.groups * g.maps + channel) * g.positions()..][..g.positions()];
            for (tap, factor) in kernel[channel * g.taps()..][..g.taps()].iter().enumerate() {
                for (y, row) in map.chunks_exact(g.map[1]).enumerate() {
                    let run = Run { y, x: 0, length: g.map[1] };
                    spread_run(g, tap, run, row, *factor, pixels);
                }
            }
        }
    });
}

/// As [`kernel_gradient`](super::convolution::kernel_gradient), from a row of the kernel on.
pub fn kernel_gradient(g: &Geometry, image: &[f32], map: &[f32], first: usize, dkernel: &mut [f32], adds: bool) {
    let samples = map.len() / (g.groups * g.maps * g.positions());
    parallel::chunks(dkernel, 1, |i, sum| {
        let (channel, tap) = (first + i / g.taps(), i % g.taps());
        let (ky, kx) = (tap / g.kernel[1], tap % g.kernel[1]);
        let inside = g.inside(1, kx);
        let mut total = 0.0;
        for sample in 0..samples {
            let map = &map[(sample * g.groups * g.maps + channel) * g.positions()..][..g.positions()];
            let pixels = &image[(sample * g.groups + channel / g.maps) * g.pixels()..][..g.pixels()];
            for y in g.inside(0, ky) {
                if inside.is_empty() {
                    continue;
                }
                let from = &pixels[g.at(0, y, ky) * g.image[1]..][..g.image[1]][g.at(1, inside.start, kx)..];
                let row = &map[y * g.map[1]..][inside.clone()];
                total += match g.stride[1] {
                    1 => vector::dot(row, &from[..row.len()]),
                    stride => row.iter().zip(from.iter().step_by(stride)).map(|(a, b)| a * b).sum(),
                };
            }
        }
        sum[0] = if adds { sum[0] + total } else { total };
    });
}
