//! Functions that a GPU approximates. They are computed in `f64` here and rounded once, so that they err by half a unit in the last
//! place, less than any GPU. A kernel that needs what a GPU's error does can't be checked here.

use super::float::{Style, flush};
use crate::machine::{Register, Registers, binary, unary};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// An approximate function of `f32`.
#[derive(Debug, Clone)]
pub struct Approximate {
    function: Function,
    style: Style,
    to: Register,
    from: [Register; 2],
}

#[derive(Debug, Clone, Copy)]
enum Function {
    Exp2,
    Log2,
    Sin,
    Cos,
    Tanh,
    Sqrt,
    RSqrt,
    Rcp,
    Div,
    DivFull,
}

impl Approximate {
    /// `ex2`, `lg2`, `sin`, `cos`, `tanh`, `sqrt`, `rsqrt`, `rcp` and `div` with `.approx`, and `div.full`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Approximate, Error> {
        use Function::*;
        let full = form.take("full");
        if !full && !form.take("approx") {
            return Err(form.unsupported());
        }
        let function = match form.base() {
            "div" if full => DivFull,
            "div" => Div,
            _ if full => return Err(form.unsupported()),
            "ex2" => Exp2,
            "lg2" => Log2,
            "sin" => Sin,
            "cos" => Cos,
            "tanh" => Tanh,
            "sqrt" => Sqrt,
            "rsqrt" => RSqrt,
            "rcp" => Rcp,
            _ => return Err(form.unsupported()),
        };
        let count = if matches!(function, Div | DivFull) { 2 } else { 1 };
        let style = Style { flush: form.take("ftz"), ..Style::default() };
        if form.ty()? != Type::F32 {
            return Err(form.unsupported());
        }
        form.operands(operands, 1 + count)?;
        let to = decoder.target(&operands[0], Type::F32)?;
        let a = decoder.source(&operands[1], Type::F32)?;
        let b = if count == 2 { decoder.source(&operands[2], Type::F32)? } else { a };
        Ok(Approximate { function, style, to, from: [a, b] })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        let &Approximate { function, style, to, from } = self;
        let each = |registers: &mut Registers, f: fn(f64) -> f64| {
            unary(registers, mask, to, from[0], |a: f32| style.result(f(f64::from(style.operand(a))) as f32));
        };
        match function {
            Function::Exp2 => each(registers, f64::exp2),
            Function::Log2 => each(registers, f64::log2),
            Function::Sin => each(registers, f64::sin),
            Function::Cos => each(registers, f64::cos),
            Function::Tanh => each(registers, f64::tanh),
            Function::Sqrt => each(registers, f64::sqrt),
            // Without `.ftz` these still take a subnormal operand as zero on some devices; here they do not.
            Function::RSqrt => each(registers, |a| 1.0 / a.sqrt()),
            Function::Rcp => each(registers, |a| 1.0 / a),
            Function::Div | Function::DivFull => {
                let full = matches!(function, Function::DivFull);
                binary(registers, mask, to, from, |a: f32, b: f32| {
                    let (a, b) = (style.operand(a), style.operand(b));
                    style.result(if full { a / b } else { divide(a, b) })
                });
            }
        }
    }
}

/// `div.approx`: a divisor above 2^126 gives zero, or NaN for an infinite dividend, as the reference of PTX says.
fn divide(a: f32, b: f32) -> f32 {
    let large = b.abs() > 2f32.powi(126) && b.is_finite();
    if large { a * flush(0.0f32.copysign(b)) } else { a / b }
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{refused, single};

    /// `x` is within half a unit in the last place of `expected`.
    fn near(x: f32, expected: f64) {
        let ulp = f64::from(x.abs().next_up()) - f64::from(x.abs());
        assert!((f64::from(x) - expected).abs() <= ulp * 0.5001, "{x} for {expected}");
    }

    #[test]
    fn functions_are_within_half_a_unit() {
        for a in [0.01f32, 0.5, 1.0, 1.75, 2.0, 3.3, 10.0] {
            let x = f64::from(a);
            near(single("ex2.approx.f32", &[a]), 2f64.powf(x));
            near(single("ex2.approx.ftz.f32", &[-a]), 2f64.powf(-x));
            near(single("lg2.approx.f32", &[a]), x.ln() / std::f64::consts::LN_2);
            near(single("sin.approx.f32", &[a]), x.sin());
            near(single("cos.approx.ftz.f32", &[a]), x.cos());
            near(single("tanh.approx.f32", &[a]), x.tanh());
            near(single("sqrt.approx.f32", &[a]), x.sqrt());
            near(single("rsqrt.approx.f32", &[a]), 1.0 / x.sqrt());
            near(single("rcp.approx.ftz.f32", &[a]), 1.0 / x);
            near(single("div.approx.f32", &[a, 3.0]), x / 3.0);
            near(single("div.full.f32", &[a, 3.0]), x / 3.0);
        }
    }

    #[test]
    fn special_values_are_those_of_the_reference() {
        let inf = f32::INFINITY;
        assert_eq!(single("ex2.approx.f32", &[-inf]), 0.0);
        assert_eq!(single("ex2.approx.f32", &[0.0]), 1.0);
        assert_eq!(single("ex2.approx.f32", &[inf]), inf);
        assert_eq!(single("lg2.approx.f32", &[0.0]), -inf);
        assert!(single("lg2.approx.f32", &[-1.0]).is_nan());
        assert_eq!(single("rcp.approx.f32", &[-0.0]), -inf);
        assert_eq!(single("rcp.approx.f32", &[inf]), 0.0);
        assert_eq!(single("rsqrt.approx.f32", &[0.0]), inf);
        assert_eq!(single("sqrt.approx.f32", &[inf]), inf);
        assert!(single("sin.approx.f32", &[inf]).is_nan());
        assert_eq!(single("tanh.approx.f32", &[-inf]), -1.0);
    }

    #[test]
    fn flushing_is_for_operands_and_results() {
        let tiny = f32::from_bits(1);
        assert_eq!(single("rcp.approx.ftz.f32", &[tiny]), f32::INFINITY);
        assert_eq!(single("ex2.approx.ftz.f32", &[-130.0]), 0.0);
        // 2^-130 is 2^19 of the smallest, 2^-149.
        assert_eq!(single("ex2.approx.f32", &[-130.0]).to_bits(), 1 << 19);
        assert_eq!(single("lg2.approx.ftz.f32", &[tiny]), f32::NEG_INFINITY);
    }

    #[test]
    fn a_large_divisor_gives_zero_only_where_the_reference_says_so() {
        let large = 2f32.powi(127);
        assert_eq!(single("div.approx.f32", &[1e30, large]), 0.0);
        assert!(single("div.approx.f32", &[f32::INFINITY, large]).is_nan());
        assert_eq!(single("div.full.f32", &[large, large]), 1.0);
        assert_eq!(single("div.approx.f32", &[1.0, f32::INFINITY]), 0.0);
        refused("ex2.full.f32 %f0, %f1;");
        refused("ex2.f32 %f0, %f1;");
    }
}
