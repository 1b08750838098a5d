//! Bytes as floats in [0, 1].

use super::{Dataset, Error};

/// A dataset of bytes, read as floats: each byte divided by 255. Made by [`Dataset::to_tensor`].
#[derive(Clone, Debug)]
pub struct ToTensor<D> {
    dataset: D,
}

impl<D> ToTensor<D> {
    pub(crate) fn new(dataset: D) -> ToTensor<D> {
        ToTensor { dataset }
    }

    /// The dataset of bytes.
    pub fn into_inner(self) -> D {
        self.dataset
    }
}

impl<D: Dataset<Element = u8>> Dataset for ToTensor<D> {
    type Element = f32;
    type Target = D::Target;

    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn shape(&self) -> &[usize] {
        self.dataset.shape()
    }

    fn read(&self, index: usize, sample: &mut [f32]) -> Result<(), Error> {
        // The bytes are read into the last quarter of the floats' own memory and widened from the front: each float ends at
        // or before the next byte to be read. So no second buffer is needed, and nothing is allocated.
        let length = sample.len();
        let memory: &mut [u8] = bytemuck::cast_slice_mut(sample);
        self.dataset.read(index, &mut memory[3 * length..])?;
        for i in 0..length {
            let value = f32::from(memory[3 * length + i]) / 255.0;
            memory[4 * i..4 * i + 4].copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    }

    fn label(&self, index: usize) -> Result<D::Target, Error> {
        self.dataset.label(index)
    }

    fn target_len(&self) -> usize {
        self.dataset.target_len()
    }

    fn read_target(&self, index: usize, target: &mut [D::Target]) -> Result<(), Error> {
        self.dataset.read_target(index, target)
    }

    fn classes(&self) -> &[String] {
        self.dataset.classes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Images;

    #[test]
    fn every_byte() {
        let images = Images::new([1, 16, 16], (0..=255).collect(), vec![0], ["all"]).unwrap();
        let mut sample = [9.0; 256];
        images.to_tensor().read(0, &mut sample).unwrap();
        for (byte, value) in sample.iter().enumerate() {
            assert_eq!(*value, byte as f32 / 255.0);
        }
    }
}
