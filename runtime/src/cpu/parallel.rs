//! Loops whose turns run on several threads.
//!
//! How work is split depends on the work alone, never on the number of threads, so that results do not either. On a
//! thread that belongs to no pool (one thread was asked for, or Miri interprets) the turns run one after the other.

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
