//! What a dataset is.

use std::sync::Arc;

use super::{Error, ToTensor};

/// Samples of one shape, each with a target: a class, or numbers.
///
/// Samples that lie in memory are a [`TensorDataset`](super::TensorDataset) or [`Images`](super::Images). What is read or computed one
/// by one is a dataset of your own:
///
/// ```
/// use plimsoll_runtime::data::{Dataset, Error};
///
/// /// Is a number even?
/// struct Parity;
///
/// impl Dataset for Parity {
///     type Element = f32;
///     type Target = i32;
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no dataset",
    note = "samples in memory are a `TensorDataset` or `Images`; anything else implements `Dataset`"
)]
pub trait Dataset: Send + Sync + 'static {
    /// What a sample is made of: `u8` for pixels as they are, `f32` for numbers.
    type Element: Copy + Default + Send + Sync + 'static;

    /// What a target is made of: `i32` for classes, `f32` for numbers.
    type Target: Copy + Default + Send + Sync + 'static;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// The shape of one sample: channels, height and width for pictures.
    fn shape(&self) -> &[usize];

    /// Writes a sample into a slice of [`sample_len`](Dataset::sample_len) elements.
    ///
    /// # Errors
    /// A sample that is not there or can't be read, a slice of another length.
    fn read(&self, index: usize, sample: &mut [Self::Element]) -> Result<(), Error>;

    /// The target of a sample: its class, or its number; where a target has several elements, the first.
    ///
    /// # Errors
    /// A sample that is not there.
    fn label(&self, index: usize) -> Result<Self::Target, Error>;

    /// How many elements a target has: one, unless said. A dataset that says more has its own
    /// [`read_target`](Dataset::read_target).
    fn target_len(&self) -> usize {
        1
    }

    /// Writes a target into a slice of [`target_len`](Dataset::target_len) elements.
    ///
    /// # Errors
    /// A sample that is not there, a slice of another length.
    fn read_target(&self, index: usize, target: &mut [Self::Target]) -> Result<(), Error> {
        let [target] = target else {
            return Err(Error::TargetLength { expected: 1, given: target.len() });
        };
        *target = self.label(index)?;
        Ok(())
    }

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
    type Target = D::Target;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn shape(&self) -> &[usize] {
        (**self).shape()
    }

    fn read(&self, index: usize, sample: &mut [D::Element]) -> Result<(), Error> {
        (**self).read(index, sample)
    }

    fn label(&self, index: usize) -> Result<D::Target, Error> {
        (**self).label(index)
    }

    fn target_len(&self) -> usize {
        (**self).target_len()
    }

    fn read_target(&self, index: usize, target: &mut [D::Target]) -> Result<(), Error> {
        (**self).read_target(index, target)
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
