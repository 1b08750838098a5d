//! `(x - mean) / std` per channel.

use super::Transform;
use crate::data::{Error, Random};

/// Subtracts a mean and divides by a standard deviation: one number for all, or one for each channel (the first size of a
/// sample's shape). A network's own `normalize` layer does the same on the device, from bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalize {
    mean: Vec<f32>,
    std: Vec<f32>,
}

impl Normalize {
    /// Normalizes with these numbers.
    pub fn new(mean: impl Into<Vec<f32>>, std: impl Into<Vec<f32>>) -> Normalize {
        Normalize { mean: mean.into(), std: std.into() }
    }
}

impl Transform<f32> for Normalize {
    fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error> {
        let channels = shape.first().copied().unwrap_or(1);
        if self.mean.len() != self.std.len() || self.mean.len() != 1 && self.mean.len() != channels {
            return Err(Error::argument(
                format!(
                    "`Normalize` has {} means and {} standard deviations for samples of shape {shape:?}",
                    self.mean.len(),
                    self.std.len()
                ),
                format!("give one number of each, or {channels}: one for each channel"),
            ));
        }
        // Written so that a number that is none fails it, too.
        if let Some(std) = self.std.iter().find(|std| !(**std > 0.0 && std.is_finite())) {
            return Err(Error::argument(
                format!("`Normalize` has the standard deviation {std}"),
                "a standard deviation is above zero",
            ));
        }
        if let Some(mean) = self.mean.iter().find(|mean| !mean.is_finite()) {
            return Err(Error::argument(format!("`Normalize` has the mean {mean}"), "give a finite number"));
        }
        Ok(shape.to_vec())
    }

    fn apply(&self, _shape: &[usize], input: &[f32], output: &mut [f32], _random: &mut Random) {
        let plane = input.len() / self.mean.len();
        if plane == 0 {
            return;
        }
        let planes = input.chunks_exact(plane).zip(output.chunks_exact_mut(plane));
        for ((input, output), (mean, std)) in planes.zip(self.mean.iter().zip(&self.std)) {
            for (x, y) in input.iter().zip(output) {
                *y = (x - mean) / std;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_channel_or_for_all() {
        let input = [1.0, 2.0, 3.0, 4.0];
        let mut output = [0.0; 4];
        Normalize::new([1.0, 2.0], [2.0, 4.0]).apply(&[2, 1, 2], &input, &mut output, &mut Random::new(0));
        assert_eq!(output, [0.0, 0.5, 0.25, 0.5]);
        Normalize::new([1.0], [2.0]).apply(&[2, 1, 2], &input, &mut output, &mut Random::new(0));
        assert_eq!(output, [0.0, 0.5, 1.0, 1.5]);
    }

    #[test]
    fn arguments() {
        let error = |normalize: Normalize| normalize.output_shape(&[3, 2, 2]).unwrap_err().to_string();
        assert!(error(Normalize::new([0.5, 0.5], [0.5, 0.5])).contains("or 3: one for each channel"));
        assert!(error(Normalize::new([0.5], [0.0])).contains("above zero"));
        assert!(error(Normalize::new([0.5], [f32::NAN])).contains("above zero"));
        assert!(error(Normalize::new([f32::INFINITY], [1.0])).contains("finite"));
        assert!(error(Normalize::new([], [])).contains("0 means"));
    }
}
