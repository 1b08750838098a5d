//! The memory of batches, used again and again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Error;

/// The memory of one batch.
pub(super) struct Buffers<T> {
    pub(super) inputs: Box<[T]>,
    pub(super) targets: Box<[i32]>,
    pub(super) indices: Box<[usize]>,
    /// How many samples it holds at present.
    pub(super) len: usize,
}

/// Buffers that wait for their next use.
pub(super) struct Pool<T> {
    sample: usize,
    batch: usize,
    free: Mutex<Vec<Buffers<T>>>,
}

impl<T: Copy + Default> Pool<T> {
    /// A pool of `count` buffers for `batch` samples of `sample` elements each.
    pub(super) fn new(sample: usize, batch: usize, count: usize) -> Result<Pool<T>, Error> {
        let pool = Pool { sample, batch, free: Mutex::new(Vec::with_capacity(count)) };
        for _ in 0..count {
            let buffers = pool.allocate()?;
            pool.free().push(buffers);
        }
        Ok(pool)
    }

    /// Buffers to fill: of those that are free, or new ones while the caller keeps many batches.
    pub(super) fn take(&self) -> Result<Buffers<T>, Error> {
        let free = self.free().pop();
        free.map_or_else(|| self.allocate(), Ok)
    }

    fn allocate(&self) -> Result<Buffers<T>, Error> {
        fn filled<T: Copy + Default>(length: Option<usize>) -> Option<Box<[T]>> {
            let (length, mut memory) = (length?, Vec::new());
            memory.try_reserve_exact(length).ok()?;
            memory.resize(length, T::default());
            Some(memory.into())
        }
        let allocated = || {
            Some(Buffers {
                inputs: filled(self.batch.checked_mul(self.sample))?,
                targets: filled(Some(self.batch))?,
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

impl<T> Pool<T> {
    fn free(&self) -> MutexGuard<'_, Vec<Buffers<T>>> {
        // What the lock guards is whole at all times: a thread that panicked elsewhere did not spoil it.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes buffers for their next use.
    pub(super) fn give_back(&self, buffers: Buffers<T>) {
        let mut free = self.free();
        // Beyond the capacity lie buffers that were needed once, when the caller kept many batches.
        if free.len() < free.capacity() {
            free.push(buffers);
        }
    }
}

/// Some samples with their targets. Its memory returns to the loader when it is dropped.
pub struct Batch<T> {
    /// Taken in `drop` alone.
    buffers: Option<Buffers<T>>,
    pool: Arc<Pool<T>>,
}

impl<T> Batch<T> {
    pub(super) fn new(buffers: Buffers<T>, pool: Arc<Pool<T>>) -> Batch<T> {
        Batch { buffers: Some(buffers), pool }
    }

    fn buffers(&self) -> &Buffers<T> {
        self.buffers.as_ref().expect("taken in drop alone")
    }

    /// The samples, one after the other.
    pub fn inputs(&self) -> &[T] {
        &self.buffers().inputs[..self.len() * self.pool.sample]
    }

    /// The class of each sample.
    pub fn targets(&self) -> &[i32] {
        &self.buffers().targets[..self.len()]
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

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        if let Some(buffers) = self.buffers.take() {
            self.pool.give_back(buffers);
        }
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("indices", &self.indices()).field("targets", &self.targets()).finish()
    }
}
