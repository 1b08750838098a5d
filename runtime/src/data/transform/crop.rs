//! A window at a random place.

use super::{Transform, height_and_width};
use crate::data::{Error, Random};

/// Cuts a window out of a picture at a random place, after padding it with zeros on all sides.
///
/// `RandomCrop::new(32).padding(4)` is what CIFAR is usually trained with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomCrop {
    height: usize,
    width: usize,
    padding: usize,
}

impl RandomCrop {
    /// A square window.
    pub fn new(size: usize) -> RandomCrop {
        RandomCrop::rectangle(size, size)
    }

    /// A window of another form.
    pub fn rectangle(height: usize, width: usize) -> RandomCrop {
        RandomCrop { height, width, padding: 0 }
    }

    /// Rows and columns of zeros on each side of the picture.
    pub fn padding(self, padding: usize) -> RandomCrop {
        RandomCrop { padding, ..self }
    }
}

impl<T: Copy + Default> Transform<T> for RandomCrop {
    fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error> {
        let (height, width) = height_and_width(shape, "RandomCrop")?;
        // Checked, so that the sums in `apply` can't overflow.
        let fits = |window: usize, size: usize| {
            let padded = self.padding.checked_mul(2).and_then(|padding| padding.checked_add(size));
            window > 0 && padded.is_some_and(|padded| window <= padded && padded < usize::MAX)
        };
        if !fits(self.height, height) || !fits(self.width, width) {
            return Err(Error::argument(
                format!(
                    "`RandomCrop` can't cut {} x {} out of {height} x {width} with a padding of {}",
                    self.height, self.width, self.padding
                ),
                "choose a smaller window, or another padding",
            ));
        }
        let mut result = shape.to_vec();
        let planes = shape.len() - 2;
        result[planes..].copy_from_slice(&[self.height, self.width]);
        Ok(result)
    }

    fn apply(&self, shape: &[usize], input: &[T], output: &mut [T], random: &mut Random) {
        let (height, width) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let top = random.below(height + 2 * self.padding - self.height + 1);
        let left = random.below(width + 2 * self.padding - self.width + 1);
        output.fill(T::default());
        if input.is_empty() {
            return;
        }
        // Columns of the window that lie on the picture, and the picture's column at the first of them.
        let start = self.padding.saturating_sub(left).min(self.width);
        let from = (left + start).saturating_sub(self.padding).min(width);
        let columns = (self.width - start).min(width - from);
        let planes = input.chunks_exact(height * width).zip(output.chunks_exact_mut(self.height * self.width));
        for (picture, window) in planes {
            for (y, row) in window.chunks_exact_mut(self.width).enumerate() {
                let Some(line) = (top + y).checked_sub(self.padding).filter(|line| *line < height) else { continue };
                row[start..start + columns].copy_from_slice(&picture[line * width + from..][..columns]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every result is the window of the padded picture at one place, and every place occurs.
    #[test]
    fn windows_of_the_padded_picture() {
        let shape = [2, 3, 4];
        let input: Vec<u8> = (1..=24).collect();
        for (height, width, padding) in [(3, 4, 1), (3, 4, 4), (2, 2, 0), (5, 6, 1), (1, 9, 3), (3, 4, 0)] {
            let crop = RandomCrop::rectangle(height, width).padding(padding);
            let result = Transform::<u8>::output_shape(&crop, &shape).unwrap();
            assert_eq!(result, [2, height, width]);
            let pixel = |plane: usize, y: usize, x: usize| {
                let (Some(y), Some(x)) = (y.checked_sub(padding), x.checked_sub(padding)) else { return 0 };
                if y < 3 && x < 4 { input[(plane * 3 + y) * 4 + x] } else { 0 }
            };
            let (tops, lefts) = (3 + 2 * padding - height + 1, 4 + 2 * padding - width + 1);
            let windows: Vec<Vec<u8>> = (0..tops * lefts)
                .map(|place| {
                    let (top, left) = (place / lefts, place % lefts);
                    (0..2 * height * width)
                        .map(|i| pixel(i / (height * width), top + i / width % height, left + i % width))
                        .collect()
                })
                .collect();
            let mut seen = vec![false; windows.len()];
            for index in 0..2000 {
                let mut output = vec![99; 2 * height * width];
                crop.apply(&shape, &input, &mut output, &mut Random::for_sample(1, 0, index));
                assert!(windows.contains(&output), "{crop:?} made {output:?}");
                windows.iter().zip(&mut seen).for_each(|(window, seen)| *seen |= *window == output);
            }
            assert!(seen.iter().all(|seen| *seen), "{crop:?}");
        }
    }

    #[test]
    fn too_large() {
        let error = Transform::<u8>::output_shape(&RandomCrop::new(33), &[3, 32, 32]).unwrap_err();
        assert!(error.to_string().contains("can't cut 33 x 33 out of 32 x 32"), "{error}");
        assert!(Transform::<u8>::output_shape(&RandomCrop::new(1), &[5]).is_err());
        assert!(Transform::<u8>::output_shape(&RandomCrop::new(0), &[5, 5]).is_err());
        let endless = RandomCrop::new(3).padding(usize::MAX / 2);
        assert!(Transform::<u8>::output_shape(&endless, &[5, 5]).is_err());
    }
}
