//! Loops whose turns run on several threads.
//!
//! How work is split depends on the work alone, never on the number of threads, so that results do not either. On a
//! thread that belongs to no pool (one thread was asked for, or Miri interprets) the turns run one after the other.

use std::ops::Range;

use rayon::prelude::*;

/// Elements that one task of an elementwise loop handles: enough to outweigh handing it to another thread.
pub const CHUNK: usize = 16 << 10;

fn is_parallel(tasks: usize) -> bool {
    tasks > 1 && rayon::current_thread_index().is_some()
}

/// Calls `work` with every number below `tasks`.
pub fn for_each(tasks: usize, work: impl Fn(usize) + Sync + Send) {
    if is_parallel(tasks) {
        (0..tasks).into_par_iter().for_each(work);
    } else {
        (0..tasks).for_each(work);
    }
}

/// Calls `work` with every chunk of `size` elements (the last may be shorter) and its number.
pub fn chunks<T: Send>(slice: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync + Send) {
    let size = size.max(1);
    if is_parallel(slice.len().div_ceil(size)) {
        slice.par_chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
    } else {
        slice.chunks_mut(size).enumerate().for_each(|(i, chunk)| work(i, chunk));
    }
}

/// Calls `work` with the chunks of two slices side by side, of `first_size` and `second_size` elements.
pub fn chunks2<T: Send, U: Send>(
    (first, first_size): (&mut [T], usize),
    (second, second_size): (&mut [U], usize),
    work: impl Fn(usize, &mut [T], &mut [U]) + Sync + Send,
) {
    let (first_size, second_size) = (first_size.max(1), second_size.max(1));
    if is_parallel(first.len().div_ceil(first_size)) {
        let pairs = first.par_chunks_mut(first_size).zip(second.par_chunks_mut(second_size));
        pairs.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    } else {
        let pairs = first.chunks_mut(first_size).zip(second.chunks_mut(second_size));
        pairs.enumerate().for_each(|(i, (a, b))| work(i, a, b));
    }
}

/// Calls `work` with the chunks of three slices side by side.
pub fn chunks3<T: Send, U: Send, V: Send>(
    (first, first_size): (&mut [T], usize),
    (second, second_size): (&mut [U], usize),
    (third, third_size): (&mut [V], usize),
    work: impl Fn(usize, &mut [T], &mut [U], &mut [V]) + Sync + Send,
) {
    let (first_size, second_size, third_size) = (first_size.max(1), second_size.max(1), third_size.max(1));
    if is_parallel(first.len().div_ceil(first_size)) {
        let pairs = first.par_chunks_mut(first_size).zip(second.par_chunks_mut(second_size));
        let triples = pairs.zip(third.par_chunks_mut(third_size));
        triples.enumerate().for_each(|(i, ((a, b), c))| work(i, a, b, c));
    } else {
        let pairs = first.chunks_mut(first_size).zip(second.chunks_mut(second_size));
        pairs.zip(third.chunks_mut(third_size)).enumerate().for_each(|(i, ((a, b), c))| work(i, a, b, c));
    }
}

/// Calls `work` with chunks of `size` elements of slices of one length, side by side, and the place where they begin.
pub fn side_by_side<const N: usize>(
    slices: [&mut [f32]; N],
    size: usize,
    work: impl Fn(usize, [&mut [f32]; N]) + Sync + Send,
) {
    assert!(slices.iter().all(|slice| slice.len() == slices[0].len()), "slices of different lengths");
    fn halves<const N: usize>(
        start: usize,
        slices: [&mut [f32]; N],
        size: usize,
        work: &(impl Fn(usize, [&mut [f32]; N]) + Sync + Send),
    ) {
        let chunks = slices[0].len().div_ceil(size);
        if chunks < 2 {
            return work(start, slices);
        }
        let middle = chunks / 2 * size;
        let mut tails: [&mut [f32]; N] = std::array::from_fn(|_| Default::default());
        let mut i = 0;
        let heads = slices.map(|slice| {
            let (head, tail) = slice.split_at_mut(middle);
            tails[i] = tail;
            i += 1;
            head
        });
        if is_parallel(chunks) {
            rayon::join(|| halves(start, heads, size, work), || halves(start + middle, tails, size, work));
        } else {
            halves(start, heads, size, work);
            halves(start + middle, tails, size, work);
        }
    }
    halves(0, slices, size, &work);
}

/// Into how many parts a sum is split.
pub const PARTS: usize = 64;

/// The sum of `part` over ranges that make up `0..elements`, added in one order whatever the number of threads.
pub fn sum(elements: usize, part: impl Fn(Range<usize>) -> f64 + Sync + Send) -> f64 {
    let size = elements.div_ceil(PARTS).max(CHUNK);
    let mut sums = [0.0; PARTS];
    let parts = elements.div_ceil(size);
    chunks(&mut sums[..parts], 1, |i, sum| sum[0] = part(i * size..elements.min((i + 1) * size)));
    sums.iter().sum()
}
