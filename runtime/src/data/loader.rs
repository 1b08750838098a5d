//! Batches, prepared while the last one is trained on.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::handoff::Handoff;
use super::pool::{Pool, PoolOf};
use super::worker::{Prepared, Stage, Work};
use super::{Batch, Dataset, Error, Random, Transform};

/// Reads a dataset batch by batch, epoch by epoch, on threads of its own.
///
/// An epoch reads each sample once. The same seed means the same batches, whatever the number of threads and their timing.
/// The memory of a batch is used again when the batch is dropped, so that after the start of an epoch nothing is allocated
/// as long as the caller keeps one batch at a time and the dataset itself allocates nothing.
pub struct Loader<D: Dataset> {
    dataset: Arc<D>,
    stages: Arc<Vec<Stage<D::Element>>>,
    shape: Vec<usize>,
    batch_size: usize,
    seed: u64,
    shuffled: bool,
    drop_last: bool,
    workers: usize,
    epoch: u64,
    /// Made at the first epoch, when all is known that decides about sizes.
    pool: Option<Arc<PoolOf<D>>>,
}

impl<D: Dataset> Loader<D> {
    /// A loader of batches of `batch_size` samples, in the dataset's order, the last of which may be smaller.
    ///
    /// # Errors
    /// A batch size of zero, or a dataset without samples.
    pub fn new(dataset: D, batch_size: usize) -> Result<Loader<D>, Error> {
        if batch_size == 0 {
            return Err(Error::argument("the batch size is 0", "a batch has at least one sample"));
        }
        if dataset.is_empty() {
            return Err(Error::argument("the dataset has no samples", "check what it was made from"));
        }
        elements(dataset.shape())?;
        Ok(Loader {
            shape: dataset.shape().to_vec(),
            // A batch is never larger than the dataset, however large it was asked for.
            batch_size: batch_size.min(dataset.len()),
            drop_last: false,
            dataset: Arc::new(dataset),
            stages: Arc::default(),
            seed: 0,
            shuffled: false,
            workers: 1,
            epoch: 0,
            pool: None,
        })
    }

    /// Reads the samples in a random order, another one in each epoch, which the seed decides.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.shuffled = true;
        self.seed(seed)
    }

    /// The seed of random transforms, for a loader that does not [`shuffle`](Loader::shuffle).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Whether to leave out a last batch that would be smaller than the others.
    pub fn drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }

    /// How many threads prepare batches: one, unless set. More are of use where a sample takes long to read, as pictures
    /// do that must be decoded.
    pub fn workers(mut self, workers: NonZeroUsize) -> Self {
        self.workers = workers.get();
        self.pool = None;
        self
    }

    /// Applies a transform to each sample, after those given before.
    ///
    /// # Errors
    /// A transform that can't take the samples.
    pub fn transform(mut self, transform: impl Transform<D::Element>) -> Result<Self, Error> {
        let output = transform.output_shape(&self.shape)?;
        elements(&output)?;
        let shape = std::mem::replace(&mut self.shape, output);
        // An epoch that still runs keeps the stages that it began with.
        let stage = Stage { transform: Box::new(transform), shape };
        match Arc::get_mut(&mut self.stages) {
            Some(stages) => stages.push(stage),
            None => {
                return Err(Error::argument(
                    "a transform was added while an epoch runs",
                    "add all transforms before the first epoch",
                ));
            }
        }
        self.pool = None;
        Ok(self)
    }

    /// The dataset.
    pub fn dataset(&self) -> &D {
        &self.dataset
    }

    /// The shape of one sample after all transforms.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many batches an epoch has.
    pub fn len(&self) -> usize {
        let samples = self.dataset.len();
        if self.drop_last { samples / self.batch_size } else { samples.div_ceil(self.batch_size) }
    }

    /// Whether an epoch has no batches, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets the next epoch be the one with this number, from 0: to go on where a run was broken off.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
    }

    /// The next epoch: an iterator over its batches, the first of which are being prepared when this returns.
    pub fn epoch(&mut self) -> Epoch<D::Element, D::Target> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut epoch = Epoch { batches: self.len(), next: 0, workers: Vec::new(), stop, pool: None, failure: None };
        match self.order().and_then(|order| Ok((order, self.pool()?))) {
            Ok((order, pool)) => {
                let work = Arc::new(Work {
                    dataset: self.dataset.clone(),
                    stages: self.stages.clone(),
                    order,
                    batch_size: self.batch_size,
                    batches: epoch.batches,
                    seed: self.seed,
                    epoch: self.epoch,
                    pool: pool.clone(),
                    stop: epoch.stop.clone(),
                });
                epoch.pool = Some(pool);
                epoch.start(&work, self.workers.min(epoch.batches));
            }
            Err(error) => epoch.failure = Some(error),
        }
        // After the last number comes the first, rather than an end of the program.
        self.epoch = self.epoch.wrapping_add(1);
        epoch
    }

    /// The samples in the order of this epoch.
    fn order(&self) -> Result<Vec<usize>, Error> {
        let (samples, mut order) = (self.dataset.len(), Vec::new());
        order.try_reserve_exact(samples).map_err(|_| {
            Error::argument(
                format!("there is no memory for the order of {samples} samples"),
                "check the dataset's `len()`, or divide the dataset",
            )
        })?;
        order.extend(0..samples);
        if self.shuffled {
            Random::for_sample(self.seed, self.epoch, usize::MAX).shuffle(&mut order);
        }
        Ok(order)
    }

    fn pool(&mut self) -> Result<Arc<PoolOf<D>>, Error> {
        if let Some(pool) = &self.pool {
            return Ok(pool.clone());
        }
        let sample = elements(&self.shape)?;
        // Each thread fills one while another waits; the caller holds one.
        let buffers = self.workers.saturating_mul(2).min(self.len()).saturating_add(1);
        let pool = Arc::new(Pool::new(sample, self.dataset.target_len(), self.batch_size, buffers)?);
        self.pool = Some(pool.clone());
        Ok(pool)
    }
}

impl<D: Dataset> fmt::Debug for Loader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader")
            .field("samples", &self.dataset.len())
            .field("shape", &self.shape)
            .field("batch_size", &self.batch_size)
            .field("shuffled", &self.shuffled)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// How many elements a sample has, if that is a number that memory could hold.
fn elements(shape: &[usize]) -> Result<usize, Error> {
    let product = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    product.ok_or_else(|| {
        Error::argument(format!("samples of shape {shape:?} have too many elements"), "choose a smaller shape")
    })
}

struct Worker<X, Y> {
    ready: Arc<Handoff<Prepared<X, Y>>>,
    thread: JoinHandle<()>,
}

/// Tells the caller that a thread has ended, by a panic, too.
struct CloseAtEnd<X, Y>(Arc<Handoff<Prepared<X, Y>>>);

impl<X, Y> Drop for CloseAtEnd<X, Y> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The batches of one epoch. After an error there are no more. Dropping it ends its threads, each after the sample that it
/// is reading.
pub struct Epoch<X, Y = i32> {
    batches: usize,
    next: usize,
    /// Batch `i` comes from worker `i` modulo their number: so the order is the same whatever their speed.
    workers: Vec<Worker<X, Y>>,
    stop: Arc<AtomicBool>,
    pool: Option<Arc<Pool<X, Y>>>,
    /// An error that the start of the epoch met: the first item.
    failure: Option<Error>,
}

impl<X: Copy + Default + Send + Sync + 'static, Y: Copy + Default + Send + Sync + 'static> Epoch<X, Y> {
    fn start<D: Dataset<Element = X, Target = Y>>(&mut self, work: &Arc<Work<D>>, count: usize) {
        for first in 0..count {
            let ready = Arc::new(Handoff::new());
            let (work, end) = (work.clone(), CloseAtEnd(ready.clone()));
            let run = move || work.run(first, count, &end.0);
            match thread::Builder::new().name("plimsoll-loader".into()).spawn(run) {
                Ok(thread) => self.workers.push(Worker { ready, thread }),
                Err(error) => {
                    let failure = Error::Worker { message: format!("it can't start: {error}") };
                    self.end();
                    self.failure = Some(failure);
                    return;
                }
            }
        }
    }
}

impl<X, Y> Epoch<X, Y> {
    /// Ends all threads; the message of one that panicked.
    fn end(&mut self) -> Option<String> {
        self.next = self.batches;
        self.stop.store(true, Ordering::Relaxed);
        let mut panic = None;
        for Worker { ready, thread } in self.workers.drain(..) {
            // A thread that waits to hand over a batch is woken by this.
            ready.close();
            panic = thread.join().err().map(|payload| message(&*payload)).or(panic);
            if let (Some(Ok(buffers)), Some(pool)) = (ready.take(), &self.pool) {
                pool.give_back(buffers);
            }
        }
        panic
    }
}

/// What a panic said.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it panicked without a message").to_owned()
}

impl<X, Y> Iterator for Epoch<X, Y> {
    type Item = Result<Batch<X, Y>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(failure) = self.failure.take() {
            self.end();
            return Some(Err(failure));
        }
        if self.next == self.batches {
            return None;
        }
        let pool = self.pool.clone()?;
        let prepared = self.workers[self.next % self.workers.len()].ready.take();
        match prepared {
            Some(Ok(buffers)) => {
                self.next += 1;
                Some(Ok(Batch::new(buffers, pool)))
            }
            Some(Err(error)) => {
                self.end();
                Some(Err(error))
            }
            // A thread closes before its last batch only when it panics.
            None => {
                let message = self.end().unwrap_or_else(|| "it ended too early".into());
                Some(Err(Error::Worker { message }))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batches - self.next;
        // An error may end it early.
        (left.min(1), Some(left))
    }
}

impl<X, Y> std::iter::FusedIterator for Epoch<X, Y> {}

impl<X, Y> Drop for Epoch<X, Y> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<X, Y> fmt::Debug for Epoch<X, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch").field("batches", &self.batches).field("next", &self.next).finish_non_exhaustive()
    }
}
