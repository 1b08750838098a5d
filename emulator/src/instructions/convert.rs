//! `cvt`: conversions between types.

use super::float::{Style, flush, saturate};
use super::half;
use super::rounding::{self, Rounding};
use crate::machine::{Lanes, Register, Registers, Value, map};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// A conversion.
#[derive(Debug, Clone)]
pub struct Convert {
    to_type: Type,
    from_type: Type,
    style: Style,
    /// `.rni`, `.rzi`, `.rmi`, `.rpi`: to an integer value.
    to_integral: Option<Rounding>,
    to: Register,
    from: Register,
    /// Registers may be wider than their type.
    wide: [bool; 2],
}

impl Convert {
    /// `cvt`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Convert, Error> {
        let (to_type, from_type) = (form.ty()?, form.ty()?);
        let to_integral = match () {
            () if form.take("rni") => Some(Rounding::Nearest),
            () if form.take("rzi") => Some(Rounding::Zero),
            () if form.take("rmi") => Some(Rounding::Down),
            () if form.take("rpi") => Some(Rounding::Up),
            () => None,
        };
        let named = ["rn", "rz", "rm", "rp"].iter().any(|mode| form.has(mode));
        let style = Style::decode(form);
        let narrows = match (to_type, from_type) {
            (Type::F32, Type::F64) | (Type::F16, Type::F32 | Type::F64) => true,
            (to, from) => to.is_float() && !from.is_float(),
        };
        let integral = from_type.is_float() && (!to_type.is_float() || to_type == from_type);
        let known = |ty: Type| !matches!(ty, Type::Predicate | Type::B8 | Type::B16 | Type::B32 | Type::B64);
        // A float to itself needs no rounding when it is only saturated or flushed.
        let rounds = match (narrows, integral) {
            (true, _) => named && to_integral.is_none(),
            (_, true) => !named && (to_integral.is_some() || to_type.is_float()),
            _ => !named && to_integral.is_none(),
        };
        let half_rounds = to_type != Type::F16 || style.rounding == Rounding::Nearest && from_type != Type::F64;
        let double_rounds = to_type != Type::F64 || style.rounding == Rounding::Nearest;
        if !known(to_type) || !known(from_type) || !rounds || !half_rounds || !double_rounds || style.keep_nan {
            return Err(form.unsupported());
        }
        form.operands(operands, 2)?;
        let (to, to_wide) = decoder.target_at_least(&operands[0], to_type)?;
        let (from, from_wide) = decoder.source_at_least(&operands[1], from_type)?;
        Ok(Convert { to_type, from_type, style, to_integral, to, from, wide: [to_wide, from_wide] })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        match (self.from_type.is_float(), self.to_type.is_float()) {
            (false, false) => self.integer_to_integer(registers, mask),
            (false, true) => self.integer_to_float(registers, mask),
            (true, false) => self.float_to_integer(registers, mask),
            (true, true) => self.float_to_float(registers, mask),
        }
    }

    fn integer_to_integer(&self, registers: &mut Registers, mask: u32) {
        let mut values = self.integers(registers);
        if self.style.saturate {
            let unsigned = self.from_type == Type::U64;
            values = map(&values, |value| {
                saturate_integer(if unsigned { value as u64 as i128 } else { value.into() }, self.to_type)
            });
        }
        self.write_integers(registers, &values, mask);
    }

    fn integer_to_float(&self, registers: &mut Registers, mask: u32) {
        let values = self.integers(registers);
        let unsigned = self.from_type == Type::U64;
        let rounding = self.style.rounding;
        match self.to_type {
            Type::F32 => {
                let values = match (unsigned, rounding) {
                    (false, Rounding::Nearest) => map(&values, |value| value as f32),
                    (true, Rounding::Nearest) => map(&values, |value| value as u64 as f32),
                    _ => map(&values, |value| {
                        integer_to_single(if unsigned { value as u64 as i128 } else { value.into() }, rounding)
                    }),
                };
                f32::write(registers, self.to, &map(&values, |value| self.style.result(value)), mask);
            }
            Type::F16 => {
                // Every integer that a half can hold, or rounds to, passes through `f64` unchanged.
                let values =
                    map(&values, |value| half::from_f64(if unsigned { value as u64 as f64 } else { value as f64 }));
                u16::write(registers, self.to, &values, mask);
            }
            _ => {
                let values = map(&values, |value| if unsigned { value as u64 as f64 } else { value as f64 });
                f64::write(registers, self.to, &values, mask);
            }
        }
    }

    fn float_to_integer(&self, registers: &mut Registers, mask: u32) {
        let rounding = self.to_integral.unwrap_or_default();
        let values = map(&self.floats(registers), |value| {
            // What is out of range becomes the nearest in range. NaN becomes zero, or the top bit alone where `f64` or 64 bits
            // take part, as the reference of PTX says.
            if value.is_nan() {
                let large = self.from_type == Type::F64 || self.to_type.size() == 8;
                return if large { i64::MIN >> (64 - 8 * self.to_type.size()) } else { 0 };
            }
            saturate_integer(integral(value, rounding) as i128, self.to_type)
        });
        self.write_integers(registers, &values, mask);
    }

    fn float_to_float(&self, registers: &mut Registers, mask: u32) {
        let mut values = self.floats(registers);
        if let Some(rounding) = self.to_integral {
            values = map(&values, |value| integral(value, rounding));
        }
        match self.to_type {
            Type::F64 => {
                let saturated = |value: f64| if value > 0.0 { value.min(1.0) } else { 0.0 };
                let values = if self.style.saturate { map(&values, saturated) } else { values };
                f64::write(registers, self.to, &values, mask);
            }
            Type::F32 => {
                let values = map(&values, |value| self.style.result(rounding::narrow(value, self.style.rounding)));
                f32::write(registers, self.to, &values, mask);
            }
            _ => {
                let saturated = |value: f64| if self.style.saturate { saturate(value as f32).into() } else { value };
                let values = map(&values, |value| half::from_f64(saturated(value)));
                u16::write(registers, self.to, &values, mask);
            }
        }
    }

    /// The operand as integers of 64 bits; one of type `u64` by its bits.
    fn integers(&self, registers: &Registers) -> Lanes<i64> {
        if self.wide[1] {
            let row = u64::read(registers, self.from);
            return match self.from_type {
                Type::U8 => map(&row, |value| i64::from(value as u8)),
                Type::S8 => map(&row, |value| i64::from(value as i8)),
                Type::U16 => map(&row, |value| i64::from(value as u16)),
                Type::S16 => map(&row, |value| i64::from(value as i16)),
                Type::U32 => map(&row, |value| i64::from(value as u32)),
                Type::S32 => map(&row, |value| i64::from(value as i32)),
                _ => map(&row, |value| value as i64),
            };
        }
        let row = u32::read(registers, self.from);
        match self.from_type {
            Type::U8 => map(&row, |value| i64::from(value as u8)),
            Type::S8 => map(&row, |value| i64::from(value as i8)),
            Type::U16 => map(&row, |value| i64::from(value as u16)),
            Type::S16 => map(&row, |value| i64::from(value as i16)),
            Type::U32 => map(&row, i64::from),
            _ => map(&row, |value| i64::from(value as i32)),
        }
    }

    /// The result, cut to its type and extended to its register.
    fn write_integers(&self, registers: &mut Registers, values: &Lanes<i64>, mask: u32) {
        let values = match self.to_type {
            Type::U8 => map(values, |value| i64::from(value as u8)),
            Type::S8 => map(values, |value| i64::from(value as i8)),
            Type::U16 => map(values, |value| i64::from(value as u16)),
            Type::S16 => map(values, |value| i64::from(value as i16)),
            Type::U32 => map(values, |value| i64::from(value as u32)),
            Type::S32 => map(values, |value| i64::from(value as i32)),
            _ => *values,
        };
        match self.wide[0] {
            true => i64::write(registers, self.to, &values, mask),
            false => u32::write(registers, self.to, &map(&values, |value| value as u32), mask),
        }
    }

    /// The operand as `f64`, which holds every float exactly.
    fn floats(&self, registers: &Registers) -> Lanes<f64> {
        match self.from_type {
            Type::F64 => f64::read(registers, self.from),
            Type::F32 if self.style.flush => map(&f32::read(registers, self.from), |value| flush(value).into()),
            Type::F32 => map(&f32::read(registers, self.from), f64::from),
            _ => map(&u16::read(registers, self.from), half::to_f64),
        }
    }
}

fn integral(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

fn saturate_integer(value: i128, ty: Type) -> i64 {
    let bits = ty.size() as u32 * 8;
    let (low, high) = match ty.is_signed() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    value.clamp(low, high) as i64
}

/// An integer of up to 64 bits, rounded once.
fn integer_to_single(value: i128, rounding: Rounding) -> f32 {
    let nearest = value as f32;
    // `nearest` is an integer here, and the difference is small against it.
    rounding.apply(nearest, (value - nearest as i128) as f64)
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{refused, run};

    /// The bits of the result, with the operand in a narrow register.
    fn narrow(form: &str, from: u32) -> u32 {
        run(&format!("cvt.{form} %r0, %r1;"), &[0, from], &[]).0[0]
    }

    fn to_int(form: &str, from: f32) -> i32 {
        narrow(form, from.to_bits()) as i32
    }

    fn single(form: &str, from: u32) -> f32 {
        f32::from_bits(narrow(form, from))
    }

    #[test]
    fn integers_are_cut_or_extended() {
        assert_eq!(narrow("s32.s16", 0xffff), u32::MAX);
        assert_eq!(narrow("u32.u16", 0xabcd_ffff), 0xffff);
        assert_eq!(narrow("u32.u8", 0x1234), 0x34);
        assert_eq!(narrow("s32.s8", 0x80), 0xffff_ff80);
        assert_eq!(narrow("u8.u32", 0x1234), 0x34);
        assert_eq!(narrow("u16.u32", 0x1_2345), 0x2345);
        assert_eq!(narrow("sat.u8.s32", 300), 255);
        assert_eq!(narrow("sat.u8.s32", -5i32 as u32), 0);
        assert_eq!(narrow("sat.s8.s32", -300i32 as u32), -128i32 as u32);
        let wide = |form: &str, from: u32| run(&format!("cvt.{form} %rd0, %r1;"), &[0, from], &[0]).1[0];
        assert_eq!(wide("u64.u32", u32::MAX), 0xffff_ffff);
        assert_eq!(wide("s64.s32", u32::MAX), u64::MAX);
        assert_eq!(wide("s64.s16", 0x8000), -32768i64 as u64);
        assert_eq!(run("cvt.u32.u64 %r0, %rd1;", &[0], &[0, 0x1_2345_6789]).0[0], 0x2345_6789);
        assert_eq!(run("cvt.u16.u64 %r0, %rd1;", &[0], &[0, 0x1_2345_6789]).0[0], 0x6789);
        assert_eq!(run("cvt.sat.s32.u64 %r0, %rd1;", &[0], &[0, u64::MAX]).0[0], i32::MAX as u32);
    }

    #[test]
    fn integers_become_floats_in_every_mode() {
        // 2^24 + 1 lies between two floats.
        let between = (1u32 << 24) + 1;
        let (below, above) = (16_777_216.0, 16_777_218.0);
        for (mode, expected) in [("rn", below), ("rz", below), ("rm", below), ("rp", above)] {
            assert_eq!(single(&format!("{mode}.f32.u32"), between), expected);
            assert_eq!(single(&format!("{mode}.f32.s32"), between), expected);
        }
        assert_eq!(single("rp.f32.s32", (-(between as i32)) as u32), -below);
        assert_eq!(single("rn.f32.u32", u32::MAX), 4_294_967_296.0);
        assert_eq!(single("rz.f32.u32", u32::MAX), 4_294_967_040.0);
        assert_eq!(single("rn.f32.s32", -7i32 as u32), -7.0);
        assert_eq!(single("rn.f32.u8", 0x1ff), 255.0);
        assert_eq!(single("rn.f32.s8", 0xff), -1.0);
        assert_eq!(single("rn.f32.u16", 65535), 65535.0);
        let long =
            |form: &str, from: u64| f32::from_bits(run(&format!("cvt.{form} %r0, %rd1;"), &[0], &[0, from]).0[0]);
        assert_eq!(long("rn.f32.u64", u64::MAX), 18_446_744_073_709_551_616.0);
        assert_eq!(long("rz.f32.u64", u64::MAX), 18_446_742_974_197_923_840.0);
        assert_eq!(long("rn.f32.s64", -5i64 as u64), -5.0);
        let double =
            |form: &str, from: u64| f64::from_bits(run(&format!("cvt.{form} %rd0, %rd1;"), &[], &[0, from]).1[0]);
        assert_eq!(double("rn.f64.s64", -5i64 as u64), -5.0);
        assert_eq!(double("rn.f64.u64", u64::MAX), 18_446_744_073_709_551_616.0);
    }

    #[test]
    fn floats_become_integers_in_range() {
        for (mode, expected) in [("rni", [2, 2, -2]), ("rzi", [1, 2, -2]), ("rmi", [1, 2, -3]), ("rpi", [2, 3, -2])] {
            let found = [1.5, 2.5, -2.5].map(|value| to_int(&format!("{mode}.s32.f32"), value));
            assert_eq!(found, expected, "{mode}");
        }
        assert_eq!(to_int("rzi.s32.f32", 3e9), i32::MAX);
        assert_eq!(to_int("rzi.s32.f32", f32::NEG_INFINITY), i32::MIN);
        assert_eq!(to_int("rzi.u32.f32", -1.0), 0);
        assert_eq!(to_int("rzi.u32.f32", 4e9) as u32, 4_000_000_000);
        assert_eq!(to_int("rzi.s32.f32", f32::NAN), 0);
        assert_eq!(run("cvt.rzi.s32.f64 %r0, %rd1;", &[0], &[0, f64::NAN.to_bits()]).0[0], 1 << 31);
        assert_eq!(run("cvt.rzi.u64.f32 %rd0, %f1;", &[0, f32::NAN.to_bits()], &[0]).1[0], 1 << 63);
        assert_eq!(to_int("rpi.ftz.s32.f32", f32::from_bits(1)), 0);
        assert_eq!(to_int("rpi.s32.f32", f32::from_bits(1)), 1);
        assert_eq!(
            run("cvt.rzi.s64.f32 %rd0, %f1;", &[0, (-1e18f32).to_bits()], &[0]).1[0] as i64,
            -999_999_984_306_749_440
        );
        assert_eq!(run("cvt.rzi.u64.f64 %rd0, %rd1;", &[], &[0, 1e300f64.to_bits()]).1[0], u64::MAX);
        assert_eq!(run("cvt.rzi.s64.f64 %rd0, %rd1;", &[], &[0, (-2.7f64).to_bits()]).1[0] as i64, -2);
    }

    #[test]
    fn floats_round_to_integral_values_and_to_narrower_floats() {
        let value = |form: &str, from: f32| single(form, from.to_bits());
        assert_eq!(value("rni.f32.f32", 2.5), 2.0);
        assert_eq!(value("rzi.f32.f32", -2.5), -2.0);
        assert_eq!(value("rmi.f32.f32", -2.5), -3.0);
        assert_eq!(value("rpi.f32.f32", 2.1), 3.0);
        assert!(value("rni.f32.f32", -0.2).is_sign_negative());
        assert_eq!(value("sat.f32.f32", 1.5), 1.0);
        assert_eq!(value("ftz.f32.f32", f32::from_bits(1)), 0.0);
        assert_eq!(f64::from_bits(run("cvt.f64.f32 %rd0, %f1;", &[0, 0.1f32.to_bits()], &[0]).1[0]), f64::from(0.1f32));
        let narrowed =
            |form: &str| f32::from_bits(run(&format!("cvt.{form} %r0, %rd1;"), &[0], &[0, 0.1f64.to_bits()]).0[0]);
        assert_eq!(narrowed("rn.f32.f64"), 0.1);
        assert_eq!(narrowed("rz.f32.f64"), 0.1f32.next_down());
        assert_eq!(narrowed("rp.f32.f64"), 0.1);
    }

    #[test]
    fn halves_convert_both_ways() {
        assert_eq!(narrow("rn.f16.f32", 1f32.to_bits()) & 0xffff, 0x3c00);
        assert_eq!(single("f32.f16", 0x3c00), 1.0);
        assert_eq!(single("f32.f16", 0xc000), -2.0);
        assert_eq!(narrow("rn.f16.s32", 2048) & 0xffff, 0x6800);
        assert_eq!(to_int("rzi.s32.f16", f32::from_bits(0x4500)), 5);
    }

    #[test]
    fn forms_without_a_needed_mode_are_refused() {
        refused("cvt.f32.s32 %f0, %r1;");
        refused("cvt.s32.f32 %r0, %f1;");
        refused("cvt.rn.s32.s16 %r0, %r1;");
        refused("cvt.f32.f64 %f0, %fd1;");
        refused("cvt.b32.s32 %r0, %r1;");
        refused("cvt.u64.u32 %r0, %r1;");
    }
}
