//! Left and right exchanged.

use super::{Transform, height_and_width};
use crate::data::{Error, Random};

/// Mirrors a picture, left to right, with probability `p`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomHorizontalFlip {
    p: f64,
}

impl RandomHorizontalFlip {
    /// Flips with probability `p`, from 0 to 1.
    pub fn new(p: f64) -> Self {
        RandomHorizontalFlip { p }
    }
}

impl Default for RandomHorizontalFlip {
    /// One picture of two.
    fn default() -> Self {
        RandomHorizontalFlip::new(0.5)
    }
}

impl<T: Copy> Transform<T> for RandomHorizontalFlip {
    fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error> {
        height_and_width(shape, "RandomHorizontalFlip")?;
        if !(0.0..=1.0).contains(&self.p) {
            return Err(Error::argument(
                format!("`RandomHorizontalFlip` has the probability {}", self.p),
                "give a number from 0 to 1",
            ));
        }
        Ok(shape.to_vec())
    }

    fn apply(&self, shape: &[usize], input: &[T], output: &mut [T], random: &mut Random) {
        output.copy_from_slice(input);
        let width = shape[shape.len() - 1];
        if width > 0 && random.chance(self.p) {
            output.chunks_exact_mut(width).for_each(<[T]>::reverse);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_reversed() {
        let mut output = [0; 6];
        RandomHorizontalFlip::new(1.0).apply(&[1, 2, 3], &[1, 2, 3, 4, 5, 6], &mut output, &mut Random::new(0));
        assert_eq!(output, [3, 2, 1, 6, 5, 4]);
        RandomHorizontalFlip::new(0.0).apply(&[1, 2, 3], &[1, 2, 3, 4, 5, 6], &mut output, &mut Random::new(0));
        assert_eq!(output, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn half_of_them() {
        let flip = RandomHorizontalFlip::default();
        let flipped = (0..1000).filter(|index| {
            let mut output = [0; 2];
            flip.apply(&[1, 1, 2], &[0, 1], &mut output, &mut Random::for_sample(5, 0, *index));
            output == [1, 0]
        });
        assert!((450..550).contains(&flipped.count()));
    }

    #[test]
    fn no_probability() {
        for p in [-0.1, 1.1, f64::NAN] {
            let shape = Transform::<u8>::output_shape(&RandomHorizontalFlip::new(p), &[1, 2, 2]);
            assert!(shape.unwrap_err().to_string().contains("from 0 to 1"));
        }
    }
}
