//! Pictures that lie in memory.

use super::{Dataset, Error};

/// Labelled pictures of one size in memory, as bytes: what the readers of [MNIST](super::Mnist), [CIFAR](super::Cifar10) and
/// the [digits](super::digits()) return.
#[derive(Clone, PartialEq, Eq)]
pub struct Images {
    shape: [usize; 3],
    pixels: Vec<u8>,
    labels: Vec<i32>,
    classes: Vec<String>,
}

impl Images {
    /// Pictures of a shape (channels, height, width), one after the other, with a label for each; a label is the position of
    /// its class in `classes`.
    ///
    /// # Errors
    /// Numbers of pixels, labels or classes that do not match; a shape without elements.
    pub fn new(
        shape: [usize; 3],
        pixels: Vec<u8>,
        labels: Vec<i32>,
        classes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Images, Error> {
        let classes: Vec<String> = classes.into_iter().map(Into::into).collect();
        // The size of one picture first: no pictures at all would hide that it is beyond all numbers.
        let size = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let needed = size.and_then(|size| size.checked_mul(labels.len()));
        if shape.contains(&0) || needed != Some(pixels.len()) {
            return Err(Error::argument(
                format!("{} bytes are not {} pictures of shape {shape:?}", pixels.len(), labels.len()),
                "give channels x height x width bytes for each label",
            ));
        }
        let beyond = |label: &i32| usize::try_from(*label).map_or(true, |label| label >= classes.len());
        if let Some(index) = labels.iter().position(beyond) {
            return Err(Error::argument(
                format!("the label of sample {index} is {}, but there are {} classes", labels[index], classes.len()),
                "a label is the position of its class, from 0",
            ));
        }
        Ok(Images { shape, pixels, labels, classes })
    }

    /// All pixels, picture after picture.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// All labels.
    pub fn labels(&self) -> &[i32] {
        &self.labels
    }

    /// The pixels of one picture.
    pub fn image(&self, index: usize) -> Option<&[u8]> {
        let size = self.sample_len();
        self.pixels.get(index.checked_mul(size)?..)?.get(..size)
    }

    /// The first `count` pictures, and the rest.
    pub(crate) fn split_at(mut self, count: usize) -> (Images, Images) {
        let size = self.sample_len();
        let rest = Images {
            shape: self.shape,
            pixels: self.pixels.split_off(count * size),
            labels: self.labels.split_off(count),
            classes: self.classes.clone(),
        };
        (self, rest)
    }
}

impl std::fmt::Debug for Images {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Images { shape, classes, .. } = self;
        write!(f, "Images {{ {} of shape {shape:?}, {} classes }}", self.labels.len(), classes.len())
    }
}

impl Dataset for Images {
    type Element = u8;
    type Target = i32;

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, index: usize, sample: &mut [u8]) -> Result<(), Error> {
        let image = self.image(index).ok_or(Error::Index { index, len: self.len() })?;
        if image.len() != sample.len() {
            return Err(Error::Length { expected: image.len(), given: sample.len() });
        }
        sample.copy_from_slice(image);
        Ok(())
    }

    fn label(&self, index: usize) -> Result<i32, Error> {
        self.labels.get(index).copied().ok_or(Error::Index { index, len: self.len() })
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }
}
