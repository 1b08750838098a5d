//! The memory of batches, used again and again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Dataset, Error};

/// The memory of one batch.
pub(super) struct Buffers<X, Y> {
    pub(super) inputs: Box<[X]>,
    pub(super) targets: Box<[Y]>,
    pub(super) indices: Box<[usize]>,
    /// How many samples it holds at present.
    pub(super) len: usize,
}

/// Buffers that wait for their next use.
pub(super) struct Pool<X, Y> {
    /// The elements of a sample.
    sample: usize,
    /// The elements of a target.
    target: usize,
    batch: usize,
    free: Mutex<Vec<Buffers<X, Y>>>,
}

/// The pool for batches of a dataset.
pub(super) type PoolOf<D> = Pool<<D as Dataset>::Element, <D as Dataset>::Target>;

impl<X: Copy + Default, Y: Copy + Default> Pool<X, Y> {
    /// A pool of `count` buffers for `batch` samples of `sample` elements each, whose targets have `target` elements each.
    pub(super) fn new(sample: usize, target: usize, batch: usize, count: usize) -> Result<Pool<X, Y>, Error> {
        let pool = Pool { sample, target, batch, free: Mutex::new(Vec::with_capacity(count)) };
        for _ in 0..count {
            let buffers = pool.allocate()?;
            pool.free().push(buffers);
        }
        Ok(pool)
    }

    /// Buffers to fill: of those that are free, or new ones while the caller keeps many batches.
    pub(super) fn take(&self) -> Result<Buffers<X, Y>, Error> {
        let free = self.free().pop();
        free.map_or_else(|| self.allocate(), Ok)
    }

    fn allocate(&self) -> Result<Buffers<X, Y>, Error> {
        fn filled<T: Copy + Default>(length: Option<usize>) -> Option<Box<[T]>> {
            let (length, mut memory) = (length?, Vec::new());
            memory.try_reserve_exact(length).ok()?;
            memory.resize(length, T::default());
            Some(memory.into())
        }
        let allocated = || {
            Some(Buffers {
                inputs: filled(self.batch.checked_mul(self.sample))?,
                targets: filled(self.batch.checked_mul(self.target))?,
                indices: filled(Some(self.batch))?,
                len: 0,
            })
        };
        allocated().ok_or_else(|| {
            Error::argument(
                format!("there is no memory for a batch of {} samples of {} elements", self.batch, self.sample),
                "choose a smaller batch",
            )
        })
    }
}

impl<X, Y> Pool<X, Y> {
    fn free(&self) -> MutexGuard<'_, Vec<Buffers<X, Y>>> {
        // What the lock guards is whole at all times: a thread that panicked elsewhere did not spoil it.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes buffers for their next use.
    pub(super) fn give_back(&self, buffers: Buffers<X, Y>) {
        let mut free = self.free();
        // Beyond the capacity lie buffers that were needed once, when the caller kept many batches.
        if free.len() < free.capacity() {
            free.push(buffers);
        }
    }
}

/// Some samples with their targets, which are classes unless said. Its memory returns to the loader when it is dropped.
pub struct Batch<X, Y = i32> {
    /// Taken in `drop` alone.
    buffers: Option<Buffers<X, Y>>,
    pool: Arc<Pool<X, Y>>,
}

impl<X, Y> Batch<X, Y> {
    pub(super) fn new(buffers: Buffers<X, Y>, pool: Arc<Pool<X, Y>>) -> Batch<X, Y> {
        Batch { buffers: Some(buffers), pool }
    }

    fn buffers(&self) -> &Buffers<X, Y> {
        self.buffers.as_ref().expect("taken in drop alone")
    }

    /// The samples, one after the other.
    pub fn inputs(&self) -> &[X] {
        &self.buffers().inputs[..self.len() * self.pool.sample]
    }

    /// The targets, one after the other: the class of each sample, or its numbers.
    pub fn targets(&self) -> &[Y] {
        &self.buffers().targets[..self.len() * self.pool.target]
    }

    /// Where in the dataset each sample is.
    pub fn indices(&self) -> &[usize] {
        &self.buffers().indices[..self.len()]
    }

    /// How many samples there are: the loader's batch size, or less in the last batch.
    pub fn len(&self) -> usize {
        self.buffers().len
    }

    /// Whether there are none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<X, Y> Drop for Batch<X, Y> {
    fn drop(&mut self) {
        if let Some(buffers) = self.buffers.take() {
            self.pool.give_back(buffers);
        }
    }
}

impl<X, Y: fmt::Debug> fmt::Debug for Batch<X, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("indices", &self.indices()).field("targets", &self.targets()).finish()
    }
}
