//! Floating-point arithmetic that IEEE 754 defines to the bit.

use super::rounding::{self, Rounding};
use crate::fused;
use crate::machine::{Lanes, Register, Registers, Value, binary, unary};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// An operation on `f32` or `f64`.
#[derive(Debug, Clone)]
pub struct Float {
    operation: Operation,
    double: bool,
    style: Style,
    to: Register,
    from: [Register; 3],
}

/// How operands and results are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The rounding mode.
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zero of their sign.
    pub flush: bool,
    /// `.sat`: results are brought into [0, 1], and NaN to zero.
    pub saturate: bool,
    /// `.NaN`: `min` and `max` keep a NaN.
    pub keep_nan: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Min,
    Max,
    Neg,
    Abs,
    Sqrt,
    Rcp,
    CopySign,
}

impl Style {
    /// The modifiers of a form.
    pub fn decode(form: &mut Form) -> Style {
        Style {
            rounding: Rounding::decode(form),
            flush: form.take("ftz"),
            saturate: form.take("sat"),
            keep_nan: form.take("NaN"),
        }
    }

    /// An operand as the instruction sees it.
    #[inline(always)]
    pub fn operand(self, value: f32) -> f32 {
        if self.flush { flush(value) } else { value }
    }

    /// A result as the instruction leaves it.
    #[inline(always)]
    pub fn result(self, value: f32) -> f32 {
        let value = self.operand(value);
        if self.saturate { saturate(value) } else { value }
    }
}

impl Rounding {
    /// The mode that a form names, or to nearest.
    pub fn decode(form: &mut Form) -> Rounding {
        if form.take("rz") {
            Rounding::Zero
        } else if form.take("rm") {
            Rounding::Down
        } else if form.take("rp") {
            Rounding::Up
        } else {
            form.take("rn");
            Rounding::Nearest
        }
    }
}

impl Float {
    /// `add`, `sub`, `mul`, `fma`, `div`, `min`, `max`, `neg`, `abs`, `sqrt`, `rcp` and `copysign` with a defined result.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Float, Error> {
        use Operation::*;
        let (operation, count) = match form.base() {
            "add" => (Add, 2),
            "sub" => (Sub, 2),
            "mul" => (Mul, 2),
            "fma" | "mad" => (Fma, 3),
            "div" => (Div, 2),
            "min" => (Min, 2),
            "max" => (Max, 2),
            "neg" => (Neg, 1),
            "abs" => (Abs, 1),
            "sqrt" => (Sqrt, 1),
            "rcp" => (Rcp, 1),
            "copysign" => (CopySign, 2),
            _ => return Err(form.unsupported()),
        };
        let ty = form.ty()?;
        let style = Style::decode(form);
        let double = ty == Type::F64;
        let plain = Style { rounding: style.rounding, ..Style::default() };
        if !double && ty != Type::F32 || double && (style != plain || style.rounding != Rounding::Nearest) {
            return Err(form.unsupported());
        }
        form.operands(operands, 1 + count)?;
        let to = decoder.target(&operands[0], ty)?;
        let mut from = [0; 3];
        for (place, operand) in operands[1..].iter().enumerate() {
            from[place] = decoder.source(operand, ty)?;
        }
        Ok(Float { operation, double, style, to, from })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        let &Float { to, from, .. } = self;
        let [a, b, _] = from;
        if self.double {
            return self.execute_double(registers, mask);
        }
        let exact = matches!(self.operation, Operation::Min | Operation::Max | Operation::Neg | Operation::Abs);
        if self.style != Style::default() || (!exact && self.style.rounding != Rounding::Nearest) {
            return self.execute_styled(registers, mask);
        }
        match self.operation {
            Operation::Add => binary(registers, mask, to, [a, b], |a: f32, b: f32| a + b),
            Operation::Sub => binary(registers, mask, to, [a, b], |a: f32, b: f32| a - b),
            Operation::Mul => binary(registers, mask, to, [a, b], |a: f32, b: f32| a * b),
            Operation::Fma => {
                let [a, b, c] = from.map(|register| f32::read(registers, register));
                f32::write(registers, to, &fused::rows(&a, &b, &c), mask);
            }
            Operation::Div => binary(registers, mask, to, [a, b], |a: f32, b: f32| a / b),
            Operation::Min => binary(registers, mask, to, [a, b], min),
            Operation::Max => binary(registers, mask, to, [a, b], max),
            Operation::Neg => unary(registers, mask, to, a, |a: f32| -a),
            Operation::Abs => unary(registers, mask, to, a, f32::abs),
            Operation::Sqrt => unary(registers, mask, to, a, f32::sqrt),
            Operation::Rcp => unary(registers, mask, to, a, |a: f32| 1.0 / a),
            Operation::CopySign => binary(registers, mask, to, [a, b], |a: f32, b: f32| b.copysign(a)),
        }
    }

    fn execute_styled(&self, registers: &mut Registers, mask: u32) {
        let style = self.style;
        let rounding = style.rounding;
        let [a, b, c] = self.from.map(|register| f32::read(registers, register).map(|value| style.operand(value)));
        let each = |f: &dyn Fn(f32, f32, f32) -> f32| -> Lanes<f32> {
            std::array::from_fn(|lane| style.result(f(a[lane], b[lane], c[lane])))
        };
        let nan = |a: f32, b: f32, result: f32| if style.keep_nan && (a.is_nan() || b.is_nan()) { NAN } else { result };
        let values = match self.operation {
            Operation::Add => each(&|a, b, _| rounding::add(a, b, rounding)),
            Operation::Sub => each(&|a, b, _| rounding::add(a, -b, rounding)),
            Operation::Mul => each(&|a, b, _| rounding::mul(a, b, rounding)),
            Operation::Fma => each(&|a, b, c| rounding::fma(a, b, c, rounding)),
            Operation::Div => each(&|a, b, _| rounding::div(a, b, rounding)),
            Operation::Min => each(&|a, b, _| nan(a, b, min(a, b))),
            Operation::Max => each(&|a, b, _| nan(a, b, max(a, b))),
            Operation::Neg => each(&|a, _, _| -a),
            Operation::Abs => each(&|a, _, _| a.abs()),
            Operation::Sqrt => each(&|a, _, _| rounding::sqrt(a, rounding)),
            Operation::Rcp => each(&|a, _, _| rounding::div(1.0, a, rounding)),
            Operation::CopySign => each(&|a, b, _| b.copysign(a)),
        };
        f32::write(registers, self.to, &values, mask);
    }

    fn execute_double(&self, registers: &mut Registers, mask: u32) {
        let [a, b, c] = self.from.map(|register| f64::read(registers, register));
        let each = |f: &dyn Fn(f64, f64, f64) -> f64| -> Lanes<f64> {
            std::array::from_fn(|lane| f(a[lane], b[lane], c[lane]))
        };
        let values = match self.operation {
            Operation::Add => each(&|a, b, _| a + b),
            Operation::Sub => each(&|a, b, _| a - b),
            Operation::Mul => each(&|a, b, _| a * b),
            Operation::Fma => each(&f64::mul_add),
            Operation::Div => each(&|a, b, _| a / b),
            Operation::Min => each(&|a, b, _| min_double(a, b)),
            Operation::Max => each(&|a, b, _| -min_double(-a, -b)),
            Operation::Neg => each(&|a, _, _| -a),
            Operation::Abs => each(&|a, _, _| a.abs()),
            Operation::Sqrt => each(&|a, _, _| a.sqrt()),
            Operation::Rcp => each(&|a, _, _| 1.0 / a),
            Operation::CopySign => each(&|a, b, _| b.copysign(a)),
        };
        f64::write(registers, self.to, &values, mask);
    }
}

/// The NaN that a GPU makes.
pub const NAN: f32 = f32::from_bits(0x7fff_ffff);

/// The smaller; of a number and a NaN the number, and -0 is smaller than +0.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        return if b.is_nan() { NAN } else { b };
    }
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// The larger, by the same rules.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    if a.is_nan() {
        return if b.is_nan() { NAN } else { b };
    }
    if b.is_nan() || a > b || (a == b && a.is_sign_positive()) { a } else { b }
}

fn min_double(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// A subnormal number becomes zero of its sign.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0f32.copysign(value) } else { value }
}

/// Into [0, 1]; NaN and -0 become +0.
#[inline(always)]
pub fn saturate(value: f32) -> f32 {
    if value > 0.0 { if value < 1.0 { value } else { 1.0 } } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{double, refused, single};

    const TINY: f32 = f32::from_bits(1);

    fn bits(form: &str, from: &[f32]) -> u32 {
        single(form, from).to_bits()
    }

    #[test]
    fn arithmetic_is_that_of_ieee_754() {
        for (a, b) in [(1.5f32, -2.25), (1.0, 3.0), (f32::MAX, 2.0), (TINY, 0.5), (0.0, -0.0), (1.0, 0.0), (-1.0, 0.0)]
        {
            assert_eq!(bits("add.f32", &[a, b]), (a + b).to_bits());
            assert_eq!(bits("sub.f32", &[a, b]), (a - b).to_bits());
            assert_eq!(bits("mul.f32", &[a, b]), (a * b).to_bits());
            assert_eq!(bits("mul.rn.f32", &[a, b]), (a * b).to_bits());
            if b != 0.0 || a != 0.0 {
                assert_eq!(bits("div.rn.f32", &[a, b]), (a / b).to_bits());
            }
            assert_eq!(bits("fma.rn.f32", &[a, b, 1.0]), a.mul_add(b, 1.0).to_bits());
            assert_eq!(bits("neg.f32", &[a]), (-a).to_bits());
            assert_eq!(bits("abs.f32", &[a]), a.abs().to_bits());
            assert_eq!(bits("rcp.rn.f32", &[a]), (1.0 / a).to_bits());
        }
        assert_eq!(single("sqrt.rn.f32", &[2.0]), std::f32::consts::SQRT_2);
        assert!(single("sqrt.rn.f32", &[-1.0]).is_nan());
        assert!(single("add.f32", &[f32::INFINITY, f32::NEG_INFINITY]).is_nan());
        assert_eq!(single("copysign.f32", &[-1.0, 2.0]), -2.0);
    }

    #[test]
    fn a_fused_sum_is_rounded_once() {
        let a = 1.0 + f32::EPSILON;
        assert_eq!(single("fma.rn.f32", &[a, a, -(1.0 + 2.0 * f32::EPSILON)]), f32::EPSILON * f32::EPSILON);
        assert_eq!(single("mad.rn.f32", &[2.0, 3.0, 4.0]), 10.0);
    }

    #[test]
    fn other_modes_round_their_way() {
        assert_eq!(single("add.rz.f32", &[1.0, TINY]), 1.0);
        assert_eq!(single("add.rp.f32", &[1.0, TINY]), 1.0f32.next_up());
        assert_eq!(single("sub.rm.f32", &[1.0, TINY]), 1.0f32.next_down());
        assert_eq!(single("mul.rp.f32", &[1.0f32.next_up(), 1.0f32.next_up()]), 1.0 + 3.0 * f32::EPSILON);
        assert_eq!(single("fma.rm.f32", &[1.0, 1.0, -TINY]), 1.0f32.next_down());
        assert_eq!(single("div.rm.f32", &[1.0, 3.0]).to_bits(), 0x3eaa_aaaa);
        assert_eq!(single("rcp.rz.f32", &[3.0]).to_bits(), 0x3eaa_aaaa);
        assert_eq!(single("sqrt.rp.f32", &[2.0]).to_bits(), 0x3fb5_04f4);
    }

    #[test]
    fn flushing_takes_subnormal_operands_and_results() {
        let small = f32::MIN_POSITIVE;
        assert_eq!(bits("add.ftz.f32", &[TINY, 0.0]), 0);
        assert_eq!(bits("mul.ftz.f32", &[-small, 0.5]), 0x8000_0000);
        assert_eq!(single("mul.f32", &[small, 0.5]), small / 2.0);
        assert_eq!(bits("neg.ftz.f32", &[TINY]), 0x8000_0000);
        assert_eq!(bits("abs.ftz.f32", &[-TINY]), 0);
        assert_eq!(single("fma.rn.ftz.f32", &[TINY, 1e30, 1.0]), 1.0);
        assert_eq!(single("max.ftz.f32", &[TINY, -1.0]), 0.0);
    }

    #[test]
    fn saturation_ends_at_zero_and_one() {
        assert_eq!(single("add.sat.f32", &[0.75, 0.5]), 1.0);
        assert_eq!(single("mul.sat.f32", &[0.5, 0.5]), 0.25);
        assert_eq!(bits("fma.rn.sat.f32", &[1.0, -1.0, 0.5]), 0);
        assert_eq!(bits("add.sat.f32", &[f32::NAN, 0.5]), 0);
    }

    #[test]
    fn the_smaller_of_a_number_and_a_nan_is_the_number() {
        for (form, expected) in [("min.f32", 1.0), ("max.f32", 2.0)] {
            assert_eq!(single(form, &[1.0, 2.0]), expected);
            assert_eq!(single(form, &[2.0, 1.0]), expected);
            assert_eq!(single(form, &[f32::NAN, 1.0]), 1.0);
            assert_eq!(single(form, &[1.0, f32::NAN]), 1.0);
            assert_eq!(bits(form, &[f32::NAN, f32::NAN]), 0x7fff_ffff);
        }
        assert_eq!(bits("min.f32", &[0.0, -0.0]), 0x8000_0000);
        assert_eq!(bits("min.f32", &[-0.0, 0.0]), 0x8000_0000);
        assert_eq!(bits("max.f32", &[0.0, -0.0]), 0);
        assert_eq!(bits("max.f32", &[-0.0, 0.0]), 0);
        assert_eq!(bits("min.NaN.f32", &[f32::NAN, 1.0]), 0x7fff_ffff);
        assert_eq!(bits("max.NaN.f32", &[1.0, f32::NAN]), 0x7fff_ffff);
    }

    #[test]
    fn doubles_have_the_same_operations() {
        assert_eq!(double("add.f64", &[0.1, 0.2]), 0.1 + 0.2);
        assert_eq!(double("sub.f64", &[0.1, 0.2]), 0.1 - 0.2);
        assert_eq!(double("mul.rn.f64", &[0.1, 0.2]), 0.1 * 0.2);
        assert_eq!(double("fma.rn.f64", &[0.1, 10.0, -1.0]), 0.1f64.mul_add(10.0, -1.0));
        assert_eq!(double("div.rn.f64", &[1.0, 3.0]), 1.0 / 3.0);
        assert_eq!(double("rcp.rn.f64", &[3.0]), 1.0 / 3.0);
        assert_eq!(double("sqrt.rn.f64", &[2.0]), std::f64::consts::SQRT_2);
        assert_eq!(double("min.f64", &[f64::NAN, 2.0]), 2.0);
        assert_eq!(double("max.f64", &[1.0, 2.0]), 2.0);
        assert_eq!(double("max.f64", &[f64::NAN, 2.0]), 2.0);
        assert_eq!(double("neg.f64", &[2.0]), -2.0);
        assert_eq!(double("abs.f64", &[-2.0]), 2.0);
        assert_eq!(double("copysign.f64", &[-1.0, 2.0]), -2.0);
    }

    #[test]
    fn forms_that_are_not_supported_are_refused() {
        refused("add.rz.f64 %fd0, %fd1, %fd2;");
        refused("add.f16 %r0, %r1, %r2;");
        refused("add.wide.f32 %f0, %f1, %f2;");
        refused("fma.rn.f32 %f0, %f1, %f2;");
    }
}
