//! What a dataset is.

use std::sync::Arc;

use super::{Error, ToTensor};

/// Samples of one shape, each with a label.
///
/// ```
/// use plimsoll_runtime::data::{Dataset, Error};
///
/// /// Is a number even?
/// struct Parity;
///
/// impl Dataset for Parity {
///     type Element = f32;
///
///     fn len(&self) -> usize {
///         1000
///     }
///
///     fn shape(&self) -> &[usize] {
///         &[1]
///     }
///
///     fn read(&self, index: usize, sample: &mut [f32]) -> Result<(), Error> {
///         sample[0] = index as f32;
///         Ok(())
///     }
///
///     fn label(&self, index: usize) -> Result<i32, Error> {
///         Ok(index as i32 % 2)
///     }
/// }
/// ```
pub trait Dataset: Send + Sync + 'static {
    /// What a sample is made of: `u8` for pixels as they are, `f32` for numbers.
    type Element: Copy + Default + Send + Sync + 'static;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// The shape of one sample: channels, height and width for pictures.
    fn shape(&self) -> &[usize];

    /// Writes a sample into a slice of [`sample_len`](Dataset::sample_len) elements.
    ///
    /// # Errors
    /// A sample that is not there or can't be read, a slice of another length.
    fn read(&self, index: usize, sample: &mut [Self::Element]) -> Result<(), Error>;

    /// The class of a sample.
    ///
    /// # Errors
    /// A sample that is not there.
    fn label(&self, index: usize) -> Result<i32, Error>;

    /// The names of the classes, where they have any: that of label 0 first.
    fn classes(&self) -> &[String] {
        &[]
    }

    /// Whether there are no samples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many elements a sample has.
    fn sample_len(&self) -> usize {
        self.shape().iter().product()
    }

    /// The same samples as floats in [0, 1], as torchvision's `ToTensor` makes them.
    fn to_tensor(self) -> ToTensor<Self>
    where
        Self: Sized + Dataset<Element = u8>,
    {
        ToTensor::new(self)
    }
}

impl<D: Dataset> Dataset for Arc<D> {
    type Element = D::Element;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn shape(&self) -> &[usize] {
        (**self).shape()
    }

    fn read(&self, index: usize, sample: &mut [D::Element]) -> Result<(), Error> {
        (**self).read(index, sample)
    }

    fn label(&self, index: usize) -> Result<i32, Error> {
        (**self).label(index)
    }

    fn classes(&self) -> &[String] {
        (**self).classes()
    }
}

/// A dataset's two parts as its publishers divide it.
#[derive(Clone, Debug)]
pub struct Split<D> {
    /// To learn from.
    pub train: D,
    /// To measure what was learnt.
    pub test: D,
}
