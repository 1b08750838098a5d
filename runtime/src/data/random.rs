//! Seeded random numbers for orders and transforms.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood 2014): a few lines whose numbers never change, so that a seed means
//! the same order of samples on every platform and with every version of every dependency.

/// A generator of its own for a seed, an epoch and a sample, so that what a sample draws does not depend on which thread
/// prepares it, or when.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: mix(seed.wrapping_add(GOLDEN)) }
    }

    /// The generator of a sample in an epoch.
    pub fn for_sample(seed: u64, epoch: u64, index: usize) -> Random {
        let mut state = Random::new(seed).state;
        for part in [epoch, index as u64] {
            state = mix(state.wrapping_add(GOLDEN) ^ mix(part.wrapping_add(GOLDEN)));
        }
        Random { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number from 0 to `bound` - 1, all of them equally likely; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // Lemire's method: the upper half of a product, drawn again in the few cases that would favour some numbers.
        let bound = bound as u64;
        let threshold = if bound == 0 { 0 } else { bound.wrapping_neg() % bound };
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        // 53 bits, which an `f64` holds exactly: never true for p = 0, always for p = 1.
        ((self.next_u64() >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < p
    }

    /// Puts elements into a random order, each order equally likely.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// The published first outputs of SplitMix64 for the state 1234567.
    #[test]
    fn known_answers() {
        let mut random = Random { state: 1_234_567 };
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected, std::array::from_fn(|_| random.next_u64()));
    }

    #[test]
    fn bounded_numbers_are_even() {
        let mut random = Random::new(1);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[random.below(7)] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert!((0..1000).all(|_| random.chance(1.0) && !random.chance(0.0)));
        assert_eq!((random.below(0), random.below(1)), (0, 0));
    }

    #[test]
    fn samples_and_epochs_differ() {
        let mut first: Vec<u64> = (0..100)
            .flat_map(|epoch| (0..100).map(move |index| Random::for_sample(3, epoch, index).next_u64()))
            .collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 10_000);
    }
}
