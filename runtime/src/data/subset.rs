//! Parts of a dataset.

use std::fmt;
use std::sync::Arc;

use super::{Dataset, Error, Random, Split};

/// Some samples of a dataset, in an order of their own. Cheap to clone: the dataset is shared.
pub struct Subset<D> {
    dataset: Arc<D>,
    indices: Arc<[usize]>,
}

impl<D> fmt::Debug for Subset<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subset {{ {} samples }}", self.indices.len())
    }
}

impl<D> Clone for Subset<D> {
    fn clone(&self) -> Self {
        Subset { dataset: self.dataset.clone(), indices: self.indices.clone() }
    }
}

impl<D: Dataset> Subset<D> {
    /// The samples with these indices.
    ///
    /// # Errors
    /// An index that the dataset does not have.
    pub fn new(dataset: impl Into<Arc<D>>, indices: impl Into<Arc<[usize]>>) -> Result<Subset<D>, Error> {
        let (dataset, indices) = (dataset.into(), indices.into());
        let len = dataset.len();
        match indices.iter().find(|index| **index >= len) {
            Some(index) => Err(Error::Index { index: *index, len }),
            None => Ok(Subset { dataset, indices }),
        }
    }

    /// Where in the whole dataset each sample is.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    fn position(&self, index: usize) -> Result<usize, Error> {
        self.indices.get(index).copied().ok_or(Error::Index { index, len: self.indices.len() })
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Element = D::Element;
    type Target = D::Target;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn shape(&self) -> &[usize] {
        self.dataset.shape()
    }

    fn read(&self, index: usize, sample: &mut [D::Element]) -> Result<(), Error> {
        self.dataset.read(self.position(index)?, sample)
    }

    fn label(&self, index: usize) -> Result<D::Target, Error> {
        self.dataset.label(self.position(index)?)
    }

    fn target_len(&self) -> usize {
        self.dataset.target_len()
    }

    fn read_target(&self, index: usize, target: &mut [D::Target]) -> Result<(), Error> {
        self.dataset.read_target(self.position(index)?, target)
    }

    fn classes(&self) -> &[String] {
        self.dataset.classes()
    }
}

/// Divides a dataset at random: `test_fraction` of its samples, rounded up, are for testing. The same seed divides it the
/// same way.
///
/// # Errors
/// A fraction that leaves one of the parts empty.
pub fn train_test_split<D: Dataset>(
    dataset: impl Into<Arc<D>>,
    seed: u64,
    test_fraction: f64,
) -> Result<Split<Subset<D>>, Error> {
    let dataset = dataset.into();
    let len = dataset.len();
    let test = (len as f64 * test_fraction).ceil();
    // Written so that a fraction that is no number fails it, too.
    if !(test_fraction > 0.0 && test >= 1.0 && test < len as f64) {
        return Err(Error::argument(
            format!("a test fraction of {test_fraction} leaves a part of the {len} samples empty"),
            "give a fraction between 0 and 1, such as 0.2",
        ));
    }
    let mut indices: Vec<usize> = (0..len).collect();
    Random::new(seed).shuffle(&mut indices);
    let train = indices.split_off(test as usize);
    Ok(Split {
        train: Subset { dataset: dataset.clone(), indices: train.into() },
        test: Subset { dataset, indices: indices.into() },
    })
}
