//! `a * b + c` rounded once, for many values. Processors with the instruction run it on eight at a time; others take the slow way to the
//! same bits.

use crate::machine::Lanes;

/// `a * b + c` of rows.
#[inline]
pub fn rows(a: &Lanes<f32>, b: &Lanes<f32>, c: &Lanes<f32>) -> Lanes<f32> {
    #[cfg(target_arch = "x86_64")]
    if processor_has_it() {
        // SAFETY: the processor has both features.
        return unsafe { rows_by_processor(a, b, c) };
    }
    std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
}

/// Adds `a * b` to each of the sums.
pub fn accumulate(sums: &mut [f32], a: &[f32], b: f32) {
    #[cfg(target_arch = "x86_64")]
    if processor_has_it() {
        // SAFETY: the processor has both features.
        return unsafe { accumulate_by_processor(sums, a, b) };
    }
    sums.iter_mut().zip(a).for_each(|(sum, a)| *sum = a.mul_add(b, *sum));
}

#[cfg(target_arch = "x86_64")]
fn processor_has_it() -> bool {
    std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx2")]
fn rows_by_processor(a: &Lanes<f32>, b: &Lanes<f32>, c: &Lanes<f32>) -> Lanes<f32> {
    std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx2")]
fn accumulate_by_processor(sums: &mut [f32], a: &[f32], b: f32) {
    sums.iter_mut().zip(a).for_each(|(sum, a)| *sum = a.mul_add(b, *sum));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_have_the_bits_of_one_rounding() {
        let a: Lanes<f32> = std::array::from_fn(|i| 1.0 + i as f32 * f32::EPSILON);
        let b = a.map(|a| a - 3.0);
        let c: Lanes<f32> = std::array::from_fn(|i| (-1f32).powi(i as i32) * 2.0 + i as f32 / 7.0);
        let expected: Lanes<f32> = std::array::from_fn(|i| a[i].mul_add(b[i], c[i]));
        assert_eq!(rows(&a, &b, &c), expected);
        let mut sums = c;
        accumulate(&mut sums, &a, 0.1);
        assert!((0..32).all(|i| sums[i] == a[i].mul_add(0.1, c[i])));
    }
}
