//! Results of sums: `A^T m A`.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::super::convolution::Columns;
use super::super::correlation::Grid;
use super::super::microkernel::LANES;
use super::super::product::{Place, Target};
use super::super::vector::{Wide, run_wide};
use super::{AllSums, Chunk, PATCH, RESULTS, ROW, SUMS};

/// Writes the results of some maps in all chunks, which are so many tiles.
pub fn transform<P: Place>(
    sums: &mut AllSums,
    columns: &Columns,
    chunks: &[Chunk],
    maps: Range<usize>,
    tiles: usize,
    target: &Target<P>,
) {
    // What is read after the last tile.
    let written = tiles.next_multiple_of(LANES);
    for number in sums.chunks_exact_mut(SUMS) {
        for row in number.chunks_exact_mut(ROW).take(maps.len()) {
            row[written..ROW.min(written + LANES)].fill(MaybeUninit::new(0.0));
        }
    }
    run_wide(Transform { sums, columns, chunks, maps, target });
}

struct Transform<'a, 's, 't, P> {
    sums: &'a AllSums,
    columns: &'a Columns<'s>,
    chunks: &'a [Chunk],
    maps: Range<usize>,
    target: &'a Target<'t, P>,
}

impl<P: Place> Wide for Transform<'_, '_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Transform { sums, columns, chunks, maps, target } = self;
        let Grid { y, x, .. } = &columns.grid;
        for (i, map) in maps.enumerate() {
            for chunk in chunks {
                let [top, left] = chunk.result;
                let width = (chunk.length * RESULTS).min(x.count - left);
                let rows = results(&sums[i * ROW + chunk.place..]);
                for (row, results) in rows[..RESULTS.min(y.count - top)].iter().enumerate() {
                    let first = (chunk.sample * y.count + top + row) * x.count + left;
                    // SAFETY: no other task has these maps and tiles.
                    unsafe { target.store_line(map, first, &results[..width]) };
                }
            }
        }
    }
}

/// The results of a vector of tiles, row by row.
#[inline(always)]
fn results(sums: &[MaybeUninit<f32>]) -> [[f32; LANES * RESULTS]; RESULTS] {
    let mut columns = [[[0.0; LANES]; PATCH]; RESULTS];
    for j in 0..PATCH {
        // SAFETY: sums were written up to a whole vector after the last tile.
        let sums = |i: usize| unsafe { sums[(i * PATCH + j) * SUMS..][..LANES].assume_init_ref() };
        let (a, b, c, d) = (sums(0), sums(1), sums(2), sums(3));
        for t in 0..LANES {
            columns[0][j][t] = a[t] + b[t] + c[t];
            columns[1][j][t] = b[t] - c[t] - d[t];
        }
    }
    let mut rows = [[0.0; LANES * RESULTS]; RESULTS];
    for (row, [a, b, c, d]) in rows.iter_mut().zip(&columns) {
        for t in 0..LANES {
            row[t * RESULTS] = a[t] + b[t] + c[t];
            row[t * RESULTS + 1] = b[t] - c[t] - d[t];
        }
    }
    rows
}
