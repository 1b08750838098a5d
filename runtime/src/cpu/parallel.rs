//! Loops whose turns run on several threads.
//!
//! How work is split depends on the work alone, never on the number of threads, so that results do not either. On a
//! thread that belongs to no pool (one thread was asked for) the turns run one after the other.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

/// Elements that one task of an elementwise loop handles: enough to outweigh handing it to another thread.
pub const CHUNK: usize = 16 << 10;

/// Calls `work` with every number below `tasks`.
pub fn for_each(tasks: usize, work: impl Fn(usize) + Sync) {
    turns(tasks, &work);
}

/// One loop for all kinds of work: rayon's part of it is compiled once, not once for each kernel.
fn turns(tasks: usize, work: &(dyn Fn(usize) + Sync)) {
    if tasks > 1 && rayon::current_thread_index().is_some() {
        (0..tasks).into_par_iter().for_each(work);
    } else {
        (0..tasks).for_each(work);
    }
}

/// Calls `work` with every chunk of `size` elements (the last may be shorter) and its number.
pub fn chunks<T: Send>(slice: &mut [T], size: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let chunks = Chunks::new(slice, size);
    // SAFETY: each number comes once.
    for_each(chunks.count(), |i| work(i, unsafe { chunks.take(i) }));
}

/// Calls `work` with the chunks of two slices side by side, of `first_size` and `second_size` elements.
pub fn chunks2<T: Send, U: Send>(
    (first, first_size): (&mut [T], usize),
    (second, second_size): (&mut [U], usize),
    work: impl Fn(usize, &mut [T], &mut [U]) + Sync,
) {
    let (first, second) = (Chunks::new(first, first_size), Chunks::new(second, second_size));
    // SAFETY: each number comes once.
    for_each(first.count().min(second.count()), |i| unsafe { work(i, first.take(i), second.take(i)) });
}

/// Calls `work` with the chunks of three slices side by side.
pub fn chunks3<T: Send, U: Send, V: Send>(
    (first, first_size): (&mut [T], usize),
    (second, second_size): (&mut [U], usize),
    (third, third_size): (&mut [V], usize),
    work: impl Fn(usize, &mut [T], &mut [U], &mut [V]) + Sync,
) {
    let (first, second) = (Chunks::new(first, first_size), Chunks::new(second, second_size));
    let third = Chunks::new(third, third_size);
    let count = first.count().min(second.count()).min(third.count());
    // SAFETY: each number comes once.
    for_each(count, |i| unsafe { work(i, first.take(i), second.take(i), third.take(i)) });
}

/// Calls `work` with chunks of `size` elements of slices of one length, side by side, and the place where they begin.
pub fn side_by_side<const N: usize>(
    slices: [&mut [f32]; N],
    size: usize,
    work: impl Fn(usize, [&mut [f32]; N]) + Sync,
) {
    assert!(slices.iter().all(|slice| slice.len() == slices[0].len()), "slices of different lengths");
    let slices = slices.map(|slice| Chunks::new(slice, size));
    // SAFETY: each number comes once.
    for_each(slices[0].count(), |i| work(i * size.max(1), slices.each_ref().map(|chunks| unsafe { chunks.take(i) })));
}

/// The chunks of a slice, to be taken by whichever thread.
struct Chunks<'a, T> {
    base: *mut T,
    length: usize,
    size: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: what threads share is the right to take chunks, each by one of them.
unsafe impl<T: Send> Sync for Chunks<'_, T> {}

impl<'a, T> Chunks<'a, T> {
    fn new(slice: &'a mut [T], size: usize) -> Self {
        Chunks { base: slice.as_mut_ptr(), length: slice.len(), size: size.max(1), slice: PhantomData }
    }

    fn count(&self) -> usize {
        self.length.div_ceil(self.size)
    }

    /// # Safety
    /// No chunk is taken twice.
    #[allow(clippy::mut_from_ref)]
    unsafe fn take(&self, i: usize) -> &mut [T] {
        assert!(i < self.count(), "there is no such chunk");
        let start = i * self.size;
        // SAFETY: within the slice, as was checked; chunks do not overlap, and no other is this one.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(start), self.size.min(self.length - start)) }
    }
}

/// Calls `work` with every `size` columns (the last may be fewer) of a matrix with rows of `width` elements.
pub fn columns(matrix: &mut [f32], width: usize, size: usize, work: impl Fn(Columns) + Sync) {
    let shared = Shared::new([matrix]);
    for_each(width.div_ceil(size), |i| {
        work(Columns { shared: &shared, width, range: i * size..width.min((i + 1) * size) });
    });
}

/// Some columns of a matrix, which are one thread's.
pub struct Columns<'a> {
    shared: &'a Shared<'a, 1>,
    width: usize,
    /// Which ones.
    pub range: Range<usize>,
}

impl Columns<'_> {
    /// A row's elements in these columns.
    pub fn row(&mut self, row: usize) -> &mut [f32] {
        let start = row * self.width;
        // SAFETY: no other thread has these columns, and this one has no other row while it has this.
        let [elements] = unsafe { self.shared.take(start + self.range.start..start + self.range.end) };
        elements
    }
}

/// Slices of which whichever thread takes the same part of each. Empty ones stay empty.
pub struct Shared<'a, const N: usize> {
    slices: [(*mut f32, usize); N],
    lent: PhantomData<&'a mut [f32]>,
}

// SAFETY: what threads share is the right to take parts, each by one of them.
unsafe impl<const N: usize> Sync for Shared<'_, N> {}

impl<'a, const N: usize> Shared<'a, N> {
    pub fn new(slices: [&'a mut [f32]; N]) -> Self {
        Shared { slices: slices.map(|slice| (slice.as_mut_ptr(), slice.len())), lent: PhantomData }
    }

    /// # Safety
    /// Parts that are there at one time do not overlap.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn take(&self, range: Range<usize>) -> [&mut [f32]; N] {
        self.slices.map(|(base, length)| {
            if length == 0 {
                return Default::default();
            }
            assert!(range.start <= range.end && range.end <= length, "there is no such part");
            // SAFETY: within the slice, as was checked, and no other part overlaps this one.
            unsafe { std::slice::from_raw_parts_mut(base.add(range.start), range.len()) }
        })
    }
}

/// Into how many parts a sum is split.
pub const PARTS: usize = 64;

/// The sum of `part` over ranges that make up `0..elements`, added in one order whatever the number of threads.
pub fn sum(elements: usize, part: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    let size = elements.div_ceil(PARTS).max(CHUNK);
    let mut sums = [0.0; PARTS];
    let parts = elements.div_ceil(size);
    chunks(&mut sums[..parts], 1, |i, sum| sum[0] = part(i * size..elements.min((i + 1) * size)));
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::crew::Crew;

    /// Runs a function on the caller's thread and on three.
    fn on_one_thread_and_three(mut work: impl FnMut() + Send) {
        for threads in [1, 3] {
            Crew::new(threads).unwrap().run(&mut work);
        }
    }

    /// Places in order, as many as there are.
    fn places(count: usize) -> Vec<usize> {
        (0..count).collect()
    }

    #[test]
    fn every_chunk_comes_once() {
        on_one_thread_and_three(|| {
            for (length, size) in [(0, 3), (1, 3), (10, 3), (12, 3), (5, 0)] {
                let mut all = vec![0; length];
                chunks(&mut all, size, |i, chunk| {
                    chunk.iter_mut().zip(i * size.max(1)..).for_each(|(to, place)| *to += place);
                });
                assert_eq!(all, places(length), "chunks of {size}");
            }
        });
    }

    /// The shortest has the last word on how many there are.
    #[test]
    fn chunks_come_side_by_side() {
        on_one_thread_and_three(|| {
            let (mut one, mut two, mut three) = ([0u8; 5], [0u16; 9], [0u32; 20]);
            chunks2((&mut one, 1), (&mut two, 2), |i, a, b| {
                a.fill(i as u8 + 1);
                b.fill(i as u16 + 1);
            });
            assert_eq!((one, two), ([1, 2, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4, 5]));
            chunks3((&mut one, 2), (&mut two, 3), (&mut three, 4), |i, a, b, c| {
                a.fill(i as u8);
                b.fill(i as u16);
                c.fill(i as u32 + 1);
            });
            assert_eq!((one, two), ([0, 0, 1, 1, 2], [0, 0, 0, 1, 1, 1, 2, 2, 2]));
            assert_eq!(three, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
            let (mut one, mut two) = ([0.0; 7], [0.5; 7]);
            side_by_side([&mut one, &mut two], 2, |first, [a, b]| {
                for (i, (a, b)) in a.iter_mut().zip(b).enumerate() {
                    (*a, *b) = (*b, (first + i) as f32);
                }
            });
            assert_eq!((one, two), ([0.5; 7], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        });
    }

    /// Tasks have columns of their own in rows that all of them share.
    #[test]
    fn every_column_comes_once() {
        on_one_thread_and_three(|| {
            let mut matrix = vec![0.0; 4 * 7];
            columns(&mut matrix, 7, 3, |mut columns| {
                for row in 0..4 {
                    let range = columns.range.clone();
                    columns.row(row).iter_mut().zip(range).for_each(|(to, column)| *to += (row * 7 + column) as f32);
                }
            });
            assert!(matrix.iter().zip(0..).all(|(got, place)| *got == place as f32), "{matrix:?}");
        });
    }

    #[test]
    fn parts_of_slices_are_shared_out() {
        on_one_thread_and_three(|| {
            let (mut one, mut two) = ([0.0; 9], [0.0; 9]);
            let shared = Shared::new([&mut one, &mut [], &mut two]);
            for_each(3, |i| {
                // SAFETY: each task has three elements of its own.
                let [a, empty, b] = unsafe { shared.take(3 * i..3 * (i + 1)) };
                assert!(empty.is_empty());
                a.fill(i as f32);
                b.fill(-(i as f32));
            });
            assert_eq!(one, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
            assert_eq!(two, one.map(|x: f32| -x));
        });
    }
}
