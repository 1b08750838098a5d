//! The rounding modes of `f32` that are not to nearest. The exact result lies between two neighbours; the result to nearest is one
//! of them, and the sign of what it misses tells whether the other is wanted.

/// How a result is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    /// `.rn`: to nearest, ties to even.
    #[default]
    Nearest,
    /// `.rz`: towards zero.
    Zero,
    /// `.rm`: down.
    Down,
    /// `.rp`: up.
    Up,
}

impl Rounding {
    /// The result in this mode. `nearest` is the result to nearest; `error` is the sign of the exact result less `nearest`.
    pub fn apply(self, nearest: f32, error: f64) -> f32 {
        let up = match self {
            Rounding::Nearest => return nearest,
            Rounding::Down => false,
            Rounding::Up => true,
            // The exact result has the sign of the nearest, unless that is zero; then `error` has it.
            Rounding::Zero => nearest < 0.0 || (nearest == 0.0 && error < 0.0),
        };
        match up {
            true if error > 0.0 => nearest.next_up(),
            false if error < 0.0 => nearest.next_down(),
            _ => nearest,
        }
    }
}

/// `a + b`.
pub fn add(a: f32, b: f32, rounding: Rounding) -> f32 {
    fma(1.0, a, b, rounding)
}

/// `a * b`.
pub fn mul(a: f32, b: f32, rounding: Rounding) -> f32 {
    let nearest = a * b;
    // A product of two numbers of 24 bits is exact in 53.
    let exact = f64::from(a) * f64::from(b);
    match exact.is_finite() {
        true => rounding.apply(nearest, missed(exact, nearest)),
        false => nearest,
    }
}

/// `a * b + c`, rounded once.
pub fn fma(a: f32, b: f32, c: f32, rounding: Rounding) -> f32 {
    let nearest = a.mul_add(b, c);
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    if rounding == Rounding::Nearest || !sum.is_finite() {
        return nearest;
    }
    if sum == 0.0 && product != 0.0 {
        // x + -x is -0 when rounding down and +0 in the other modes.
        return if rounding == Rounding::Down { -0.0 } else { 0.0 };
    }
    if sum == 0.0 {
        let differ = product.is_sign_negative() != addend.is_sign_negative();
        return if differ && rounding == Rounding::Down { -0.0 } else { nearest };
    }
    // What the sum misses, exactly (Knuth's two-sum).
    let of_addend = sum - product;
    let rest = (product - (sum - of_addend)) + (addend - of_addend);
    let error = missed(sum, nearest);
    rounding.apply(nearest, if error == 0.0 { rest } else { error })
}

/// `a / b`.
pub fn div(a: f32, b: f32, rounding: Rounding) -> f32 {
    let nearest = a / b;
    if rounding == Rounding::Nearest || !(a / b).is_finite() && (b == 0.0 || !a.is_finite()) || nearest.is_nan() {
        return nearest;
    }
    if nearest.is_infinite() {
        return rounding.apply(nearest, -f64::from(nearest));
    }
    // The remainder is exact when fused, and has the sign of the error when the divisor is positive.
    let remainder = f64::from(-nearest).mul_add(f64::from(b), f64::from(a));
    rounding.apply(nearest, if b < 0.0 { -remainder } else { remainder })
}

/// The square root.
pub fn sqrt(a: f32, rounding: Rounding) -> f32 {
    let nearest = a.sqrt();
    if !nearest.is_finite() {
        return nearest;
    }
    let root = f64::from(nearest);
    rounding.apply(nearest, (-root).mul_add(root, f64::from(a)))
}

/// The nearest `f32` to a number, in a mode.
pub fn narrow(value: f64, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    match value.is_finite() {
        true => rounding.apply(nearest, missed(value, nearest)),
        false => nearest,
    }
}

/// The sign of an exact result less the nearest, which may be infinite where the exact result is not.
fn missed(exact: f64, nearest: f32) -> f64 {
    exact - f64::from(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Rounding::*;

    const HALF_ULP: f32 = f32::EPSILON / 2.0;

    #[test]
    fn a_sum_between_two_neighbours_goes_the_way_of_the_mode() {
        let next = 1.0 + f32::EPSILON;
        // 1 + 2^-24 is a tie; 1 + 2^-60 is just above one.
        for small in [HALF_ULP, 2f32.powi(-60)] {
            assert_eq!(add(1.0, small, Nearest), 1.0);
            assert_eq!([Zero, Down, Up].map(|mode| add(1.0, small, mode)), [1.0, 1.0, next]);
            assert_eq!([Zero, Down, Up].map(|mode| add(-1.0, -small, mode)), [-1.0, -next, -1.0]);
        }
        assert_eq!([Zero, Down, Up].map(|mode| add(1.0, 2.0, mode)), [3.0; 3]);
        // Above the largest, and just under one.
        assert_eq!(
            [Nearest, Zero, Down, Up].map(|mode| add(f32::MAX, f32::MAX, mode)),
            [f32::INFINITY, f32::MAX, f32::MAX, f32::INFINITY]
        );
        assert_eq!([Nearest, Zero, Up].map(|mode| add(1.0, -2f32.powi(-60), mode)), [1.0, 1.0 - HALF_ULP, 1.0]);
    }

    #[test]
    fn a_sum_of_zero_is_negative_only_when_rounding_down() {
        let sign = |value: f32| value.is_sign_negative();
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| sign(add(1.0, -1.0, mode))), [false, false, true, false]);
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| sign(add(0.0, -0.0, mode))), [false, false, true, false]);
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| sign(add(-0.0, -0.0, mode))), [true; 4]);
    }

    #[test]
    fn a_product_is_rounded_once() {
        // (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46
        let a = 1.0 + f32::EPSILON;
        let nearest = 1.0 + 2.0 * f32::EPSILON;
        assert_eq!(
            [Nearest, Zero, Down, Up].map(|mode| mul(a, a, mode)),
            [nearest, nearest, nearest, nearest.next_up()]
        );
        assert_eq!([Zero, Down, Up].map(|mode| mul(-a, a, mode)), [-nearest, -nearest.next_up(), -nearest]);
        // Half the smallest number: zero, or the smallest.
        let smallest = f32::from_bits(1);
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| mul(smallest, 0.5, mode)), [0.0, 0.0, 0.0, smallest]);
        assert_eq!([Zero, Down, Up].map(|mode| mul(smallest, -0.5, mode)), [0.0, -smallest, 0.0]);
    }

    #[test]
    fn a_fused_sum_sees_the_whole_product() {
        let a = 1.0 + f32::EPSILON;
        // (1 + e)^2 - (1 + 2e) = e^2, which is exact in every mode.
        for mode in [Nearest, Zero, Down, Up] {
            assert_eq!(fma(a, a, -(1.0 + 2.0 * f32::EPSILON), mode), f32::EPSILON * f32::EPSILON);
        }
        // 2^100 * 2^-100 + 2^-149 is just above one.
        let args = (2f32.powi(100), 2f32.powi(-100), f32::from_bits(1));
        assert_eq!(
            [Nearest, Zero, Down, Up].map(|mode| fma(args.0, args.1, args.2, mode)),
            [1.0, 1.0, 1.0, 1.0f32.next_up()]
        );
        assert!(fma(f32::INFINITY, 0.0, 1.0, Zero).is_nan());
    }

    #[test]
    fn quotients_and_roots_that_are_not_exact() {
        // 1/3 to nearest is 0x3EAAAAAB, above it; the neighbour below is 0x3EAAAAAA.
        let (below, above) = (f32::from_bits(0x3eaa_aaaa), f32::from_bits(0x3eaa_aaab));
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| div(1.0, 3.0, mode)), [above, below, below, above]);
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| div(1.0, -3.0, mode)), [-above, -below, -above, -below]);
        assert_eq!([Zero, Down, Up].map(|mode| div(6.0, 3.0, mode)), [2.0; 3]);
        assert_eq!([Zero, Up].map(|mode| div(1.0, 0.0, mode)), [f32::INFINITY; 2]);
        assert_eq!([Zero, Up].map(|mode| div(f32::MAX, 0.5, mode)), [f32::MAX, f32::INFINITY]);
        // sqrt(2) to nearest is 0x3FB504F3, below it.
        let below = f32::from_bits(0x3fb5_04f3);
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| sqrt(2.0, mode)), [below, below, below, below.next_up()]);
        assert_eq!([Zero, Up].map(|mode| sqrt(4.0, mode)), [2.0; 2]);
        assert!(sqrt(-1.0, Up).is_nan());
    }

    #[test]
    fn narrowing_goes_the_way_of_the_mode() {
        let above = 1.0 + f64::EPSILON;
        assert_eq!([Nearest, Zero, Down, Up].map(|mode| narrow(above, mode)), [1.0, 1.0, 1.0, 1.0f32.next_up()]);
        assert_eq!([Nearest, Zero, Up].map(|mode| narrow(1e300, mode)), [f32::INFINITY, f32::MAX, f32::INFINITY]);
    }
}
