//! Numbers that lie in memory.

use std::fmt;

use super::{Dataset, Error};

/// Samples and their targets in memory, as PyTorch's `TensorDataset`: for a classification, whose targets are classes, or a
/// regression, whose targets are numbers.
///
/// ```
/// # use plimsoll_runtime as plimsoll;
/// use plimsoll::data::{Error, Loader, TensorDataset};
///
/// # fn main() -> Result<(), Error> {
/// let inputs = vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5];
/// let classes = TensorDataset::new([2], inputs.clone(), vec![0, 1, 1])?;     // three samples of shape [2]
/// let numbers = TensorDataset::new([2], inputs, vec![0.5f32, 2.5, 4.5])?;
///
/// for batch in Loader::new(numbers, 3)?.epoch() {
///     assert_eq!(batch?.targets(), [0.5, 2.5, 4.5]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct TensorDataset<X, Y> {
    shape: Vec<usize>,
    inputs: Vec<X>,
    targets: Vec<Y>,
    len: usize,
}

impl<X, Y> TensorDataset<X, Y> {
    /// Samples of a shape, one after the other, and their targets, one after the other: one element for each sample, or as
    /// many for each as for every other.
    ///
    /// # Errors
    /// A shape without elements; numbers of elements that make no whole samples, or no whole target for each.
    pub fn new(shape: impl Into<Vec<usize>>, inputs: Vec<X>, targets: Vec<Y>) -> Result<TensorDataset<X, Y>, Error> {
        let shape = shape.into();
        let size = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let whole = size.filter(|size| *size > 0 && inputs.len().is_multiple_of(*size));
        let Some(size) = whole else {
            return Err(Error::argument(
                format!("{} elements are no whole number of samples of shape {shape:?}", inputs.len()),
                "give the shape of one sample, without the batch, and all elements of every sample",
            ));
        };
        let len = inputs.len() / size;
        if targets.len().checked_rem(len).unwrap_or(targets.len()) != 0 || targets.len() < len {
            return Err(Error::argument(
                format!("{} elements of targets can't be shared among {len} samples", targets.len()),
                "give one target for each sample, or as many elements for each as for every other",
            ));
        }
        Ok(TensorDataset { shape, inputs, targets, len })
    }

    /// The elements of all samples.
    pub fn inputs(&self) -> &[X] {
        &self.inputs
    }

    /// The elements of all targets.
    pub fn targets(&self) -> &[Y] {
        &self.targets
    }

    /// The elements of sample `index`, of all that belong to the samples, one after the other.
    fn part<'a, T>(&self, elements: &'a [T], index: usize) -> Result<&'a [T], Error> {
        if index >= self.len {
            return Err(Error::Index { index, len: self.len });
        }
        let size = elements.len() / self.len;
        Ok(&elements[index * size..][..size])
    }
}

impl<X, Y> fmt::Debug for TensorDataset<X, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorDataset {{ {} of shape {:?} }}", self.len, self.shape)
    }
}

impl<X, Y> Dataset for TensorDataset<X, Y>
where
    X: Copy + Default + Send + Sync + 'static,
    Y: Copy + Default + Send + Sync + 'static,
{
    type Element = X;
    type Target = Y;

    fn len(&self) -> usize {
        self.len
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, index: usize, sample: &mut [X]) -> Result<(), Error> {
        let own = self.part(&self.inputs, index)?;
        if own.len() != sample.len() {
            return Err(Error::Length { expected: own.len(), given: sample.len() });
        }
        sample.copy_from_slice(own);
        Ok(())
    }

    fn label(&self, index: usize) -> Result<Y, Error> {
        Ok(self.part(&self.targets, index)?[0])
    }

    fn target_len(&self) -> usize {
        self.targets.len().checked_div(self.len).unwrap_or(1)
    }

    fn read_target(&self, index: usize, target: &mut [Y]) -> Result<(), Error> {
        let own = self.part(&self.targets, index)?;
        if own.len() != target.len() {
            return Err(Error::TargetLength { expected: own.len(), given: target.len() });
        }
        target.copy_from_slice(own);
        Ok(())
    }
}
