//! What the threads of a loader do.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::handoff::Handoff;
use super::pool::{Buffers, PoolOf};
use super::{Dataset, Error, Random, Transform};

/// A transform and the shape of what it is given.
pub(super) struct Stage<T> {
    pub(super) transform: Box<dyn Transform<T>>,
    pub(super) shape: Vec<usize>,
}

/// One epoch's work, shared by its threads.
pub(super) struct Work<D: Dataset> {
    pub(super) dataset: Arc<D>,
    pub(super) stages: Arc<Vec<Stage<D::Element>>>,
    /// The samples in the order of this epoch.
    pub(super) order: Vec<usize>,
    pub(super) batch_size: usize,
    pub(super) batches: usize,
    pub(super) seed: u64,
    pub(super) epoch: u64,
    pub(super) pool: Arc<PoolOf<D>>,
    /// Set when the caller wants no more.
    pub(super) stop: Arc<AtomicBool>,
}

/// What a thread sends for each batch.
pub(super) type Prepared<X, Y> = Result<Buffers<X, Y>, Error>;

impl<D: Dataset> Work<D> {
    /// Prepares every `step`-th batch from `first` on, until the caller has gone or a sample fails.
    pub(super) fn run(&self, first: usize, step: usize, ready: &Handoff<Prepared<D::Element, D::Target>>) {
        // A sample passes from one buffer to the other, transform by transform.
        let longest = self.stages.iter().map(|stage| stage.shape.iter().product()).max().unwrap_or(0);
        let mut scratch = [vec![D::Element::default(); longest], vec![D::Element::default(); longest]];
        for batch in (first..self.batches).step_by(step) {
            let start = batch * self.batch_size;
            let samples = start..self.order.len().min(start + self.batch_size);
            let mut buffers = match self.pool.take() {
                Ok(buffers) => buffers,
                Err(error) => {
                    let _ = ready.put(Err(error));
                    return;
                }
            };
            let left = match self.fill(&mut buffers, samples, &mut scratch) {
                Ok(true) => match ready.put(Ok(buffers)) {
                    Ok(()) => continue,
                    Err(prepared) => prepared.ok(),
                },
                Ok(false) => Some(buffers),
                Err(error) => {
                    // If the caller has gone, nobody misses the error.
                    let _ = ready.put(Err(error));
                    Some(buffers)
                }
            };
            // The next epoch finds all buffers in the pool again.
            if let Some(buffers) = left {
                self.pool.give_back(buffers);
            }
            return;
        }
    }

    /// False if the caller stopped in between.
    fn fill(
        &self,
        buffers: &mut Buffers<D::Element, D::Target>,
        samples: Range<usize>,
        scratch: &mut [Vec<D::Element>; 2],
    ) -> Result<bool, Error> {
        buffers.len = samples.len();
        let [size, target_size] = [buffers.inputs.len(), buffers.targets.len()].map(|len| len / buffers.indices.len());
        for (slot, place) in samples.enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let index = self.order[place];
            let sample = &mut buffers.inputs[slot * size..][..size];
            let target = &mut buffers.targets[slot * target_size..][..target_size];
            let read = self.dataset.read_target(index, target).and_then(|()| self.read(index, sample, scratch));
            read.map_err(|source| Error::Sample { index, source: Box::new(source) })?;
            buffers.indices[slot] = index;
        }
        Ok(true)
    }

    fn read(&self, index: usize, sample: &mut [D::Element], scratch: &mut [Vec<D::Element>; 2]) -> Result<(), Error> {
        let Some((last, stages)) = self.stages.split_last() else {
            return self.dataset.read(index, sample);
        };
        let length = |stage: &Stage<D::Element>| stage.shape.iter().product::<usize>();
        let [mut from, mut to] = scratch.each_mut().map(Vec::as_mut_slice);
        self.dataset.read(index, &mut from[..length(&self.stages[0])])?;
        let mut random = Random::for_sample(self.seed, self.epoch, index);
        for (stage, next) in stages.iter().zip(&self.stages[1..]) {
            stage.transform.apply(&stage.shape, &from[..length(stage)], &mut to[..length(next)], &mut random);
            std::mem::swap(&mut from, &mut to);
        }
        last.transform.apply(&last.shape, &from[..length(last)], sample, &mut random);
        Ok(())
    }
}
