//! IEEE 754 half precision: 1 sign bit, 5 exponent bits, 10 fraction bits.

/// The value of a half, which `f64` holds exactly.
pub fn to_f64(half: u16) -> f64 {
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f64::from(half & 0x3ff));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if half & 0x8000 == 0 { size } else { -size }
}

/// The nearest half, ties to even. The NaN is the one that a GPU makes.
pub fn from_f64(value: f64) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    // 65504 is the largest; from half a unit above it on, the nearest is infinite.
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // The unit in the last place: 2^-24 for subnormal halves, and 2^-10 of the power of two below the value.
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(-14);
    let units = (size * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    // Normal numbers count their hidden bit among the units, and a carry runs into the exponent by itself.
    sign | ((((exponent + 14) as u16) << 10) + units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_halves() {
        for (half, value) in [
            (0x0000, 0.0),
            (0x0001, 2f64.powi(-24)),
            (0x03ff, 1023.0 * 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x3555, 0.333251953125),
            (0x3c00, 1.0),
            (0x3c01, 1.0 + 2f64.powi(-10)),
            (0x7bff, 65504.0),
            (0x7c00, f64::INFINITY),
            (0xc000, -2.0),
        ] {
            assert_eq!(to_f64(half), value);
            assert_eq!(from_f64(value), half);
        }
        assert_eq!(from_f64(-0.0), 0x8000);
        assert!(to_f64(0x7e00).is_nan());
        assert_eq!(from_f64(f64::NAN), 0x7fff);
    }

    #[test]
    fn rounding_is_to_nearest_and_ties_to_even() {
        assert_eq!(from_f64(1.0 / 3.0), 0x3555);
        assert_eq!(from_f64(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(from_f64(1.0 + 3.0 * 2f64.powi(-11)), 0x3c02);
        assert_eq!(from_f64(65519.9), 0x7bff);
        assert_eq!(from_f64(65520.0), 0x7c00);
        assert_eq!(from_f64(2f64.powi(-25)), 0);
        assert_eq!(from_f64(2f64.powi(-25) * 1.001), 1);
        assert_eq!(from_f64(2f64.powi(-14) * 0.9999), 0x0400);
    }

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for half in (0..=u16::MAX).filter(|half| !to_f64(*half).is_nan()) {
            assert_eq!(from_f64(to_f64(half)), half);
        }
    }
}
