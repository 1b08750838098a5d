//! Sums that keep their digits: in double precision, in several lanes so that the compiler can use vector registers.

use super::vector::wide;

const LANES: usize = 16;

/// The sum of all elements.
pub fn sum(x: &[f32]) -> f64 {
    sum_of(x, |x| x)
}

/// The sum of `f(x)` over all elements.
#[inline(always)]
pub fn sum_of(x: &[f32], f: impl Fn(f64) -> f64) -> f64 {
    wide(|| {
        let (chunks, rest) = x.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        for chunk in chunks {
            lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += f(f64::from(*x)));
        }
        lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane += f(f64::from(*x)));
        lanes.iter().sum()
    })
}

/// The sum of `f(x, y)` over the elements of two slices side by side.
#[inline(always)]
pub fn sum_of2(x: &[f32], y: &[f32], f: impl Fn(f64, f64) -> f64) -> f64 {
    wide(|| {
        let ((xs, x), (ys, y)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
        let mut lanes = [0.0; LANES];
        for (x, y) in xs.iter().zip(ys) {
            lanes.iter_mut().zip(x).zip(y).for_each(|((lane, x), y)| *lane += f(f64::from(*x), f64::from(*y)));
        }
        lanes.iter_mut().zip(x).zip(y).for_each(|((lane, x), y)| *lane += f(f64::from(*x), f64::from(*y)));
        lanes.iter().sum()
    })
}

/// The sum of products of two slices side by side.
pub fn dot(x: &[f32], y: &[f32]) -> f64 {
    sum_of2(x, y, |x, y| x * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_summed_whole() {
        for length in 0..40 {
            let x: Vec<f32> = (1..=length).map(|i| i as f32).collect();
            let n = f64::from(length);
            assert_eq!(sum(&x), n * (n + 1.0) / 2.0);
            assert_eq!(dot(&x, &x), n * (n + 1.0) * (2.0 * n + 1.0) / 6.0);
        }
    }

    #[test]
    fn small_terms_are_not_lost_beside_a_large_one() {
        let mut x = vec![1.0f32; 1001];
        x[0] = 1e8;
        assert_eq!(sum(&x), 1e8 + 1e3);
    }
}
