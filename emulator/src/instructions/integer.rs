//! Integer arithmetic.

use crate::machine::{Register, Registers, Value, binary, ternary, unary};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// An operation on integers of one type.
#[derive(Debug, Clone)]
pub struct Integer {
    operation: Operation,
    ty: Type,
    to: Register,
    from: [Register; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    AddSaturating,
    Sub,
    SubSaturating,
    MulLow,
    MulHigh,
    MulWide,
    Mul24,
    MadLow,
    MadHigh,
    MadWide,
    Mad24,
    Div,
    Rem,
    Min,
    Max,
    Abs,
    Neg,
    Sad,
}

impl Integer {
    /// `add`, `sub`, `mul`, `mad`, `mul24`, `mad24`, `div`, `rem`, `min`, `max`, `abs`, `neg` and `sad` of integers.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Integer, Error> {
        use Operation::*;
        let ty = form.integer_type()?;
        let operation = match form.base() {
            "add" if form.take("sat") => AddSaturating,
            "add" => Add,
            "sub" if form.take("sat") => SubSaturating,
            "sub" => Sub,
            "mul" if form.take("wide") => MulWide,
            "mul" if form.take("hi") => MulHigh,
            "mul" if form.take("lo") => MulLow,
            "mad" if form.take("wide") => MadWide,
            "mad" if form.take("hi") => MadHigh,
            "mad" if form.take("lo") => MadLow,
            "mul24" if form.take("lo") => Mul24,
            "mad24" if form.take("lo") => Mad24,
            "div" => Div,
            "rem" => Rem,
            "min" => Min,
            "max" => Max,
            "abs" => Abs,
            "neg" => Neg,
            "sad" => Sad,
            _ => return Err(form.unsupported()),
        };
        let fits = match operation {
            AddSaturating | SubSaturating => ty == Type::S32,
            MulWide | MadWide => ty.size() < 8,
            Mul24 | Mad24 => ty.size() == 4,
            Abs | Neg => ty.is_signed(),
            _ => true,
        };
        if !fits {
            return Err(form.unsupported());
        }
        let wide = match (operation, ty) {
            (MulWide | MadWide, Type::U16) => Type::U32,
            (MulWide | MadWide, Type::S16) => Type::S32,
            (MulWide | MadWide, Type::U32) => Type::U64,
            (MulWide | MadWide, Type::S32) => Type::S64,
            _ => ty,
        };
        let count = match operation {
            Abs | Neg => 1,
            MadLow | MadHigh | MadWide | Mad24 | Sad => 3,
            _ => 2,
        };
        form.operands(operands, 1 + count)?;
        let to = decoder.target(&operands[0], wide)?;
        let mut from = [0; 3];
        for (place, operand) in operands[1..].iter().enumerate() {
            from[place] = decoder.source(operand, if place == 2 { wide } else { ty })?;
        }
        Ok(Integer { operation, ty, to, from })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        match self.operation {
            Operation::MulWide | Operation::MadWide => self.widening(registers, mask),
            _ => match self.ty {
                Type::U16 => self.run::<u16>(registers, mask),
                Type::S16 => self.run::<i16>(registers, mask),
                Type::U32 => self.run::<u32>(registers, mask),
                Type::S32 => self.run::<i32>(registers, mask),
                Type::U64 => self.run::<u64>(registers, mask),
                _ => self.run::<i64>(registers, mask),
            },
        }
    }

    fn run<T: Number>(&self, registers: &mut Registers, mask: u32) {
        let &Integer { operation, to, from: [a, b, c], .. } = self;
        let two = |registers: &mut Registers, f: fn(T, T) -> T| binary(registers, mask, to, [a, b], f);
        let three = |registers: &mut Registers, f: fn(T, T, T) -> T| ternary(registers, mask, to, [a, b, c], f);
        match operation {
            // The most frequent are written out, so that the compiler makes vector instructions of them.
            Operation::Add => binary(registers, mask, to, [a, b], T::add),
            Operation::Sub => binary(registers, mask, to, [a, b], T::sub),
            Operation::MulLow => binary(registers, mask, to, [a, b], T::mul),
            Operation::MadLow => ternary(registers, mask, to, [a, b, c], |a: T, b: T, c: T| a.mul(b).add(c)),
            Operation::AddSaturating => two(registers, T::add_saturating),
            Operation::SubSaturating => two(registers, T::sub_saturating),
            Operation::MulHigh => two(registers, T::mul_high),
            Operation::MadHigh => three(registers, |a, b, c| a.mul_high(b).add(c)),
            Operation::Mul24 => two(registers, |a, b| a.low_24().mul(b.low_24())),
            Operation::Mad24 => three(registers, |a, b, c| a.low_24().mul(b.low_24()).add(c)),
            Operation::Div => two(registers, T::div),
            Operation::Rem => two(registers, T::rem),
            Operation::Min => two(registers, |a, b| if b < a { b } else { a }),
            Operation::Max => two(registers, |a, b| if b > a { b } else { a }),
            Operation::Abs => unary(registers, mask, to, a, T::abs),
            Operation::Neg => unary(registers, mask, to, a, |a| T::default().sub(a)),
            Operation::Sad => three(registers, |a, b, c| c.add(if a < b { b.sub(a) } else { a.sub(b) })),
            Operation::MulWide | Operation::MadWide => {}
        }
    }

    fn widening(&self, registers: &mut Registers, mask: u32) {
        let &Integer { to, from: [a, b, c], .. } = self;
        let add = self.operation == Operation::MadWide;
        macro_rules! wide {
            ($narrow:ty, $wide:ty) => {
                if add {
                    ternary(registers, mask, to, [a, b, c], |a: $narrow, b: $narrow, c: $wide| {
                        (<$wide>::from(a) * <$wide>::from(b)).wrapping_add(c)
                    })
                } else {
                    binary(registers, mask, to, [a, b], |a: $narrow, b: $narrow| <$wide>::from(a) * <$wide>::from(b))
                }
            };
        }
        match self.ty {
            Type::U16 => wide!(u16, u32),
            Type::S16 => wide!(i16, i32),
            Type::U32 => wide!(u32, u64),
            _ => wide!(i32, i64),
        }
    }
}

/// What the six integer types have in common. Arithmetic wraps.
trait Number: Value + PartialOrd {
    fn add(self, other: Self) -> Self;
    fn add_saturating(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn sub_saturating(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The upper half of the product in full.
    fn mul_high(self, other: Self) -> Self;
    /// A quotient by zero is undefined in PTX; here all its bits are one.
    fn div(self, other: Self) -> Self;
    /// A remainder by zero is undefined in PTX; here it is the dividend.
    fn rem(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// The lower 24 bits, extended.
    fn low_24(self) -> Self;
}

macro_rules! number {
    ($($name:ty, $double:ty, $abs:expr;)*) => {$(
        impl Number for $name {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn add_saturating(self, other: Self) -> Self {
                self.saturating_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn sub_saturating(self, other: Self) -> Self {
                self.saturating_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn mul_high(self, other: Self) -> Self {
                ((<$double>::from(self) * <$double>::from(other)) >> <$name>::BITS) as $name
            }
            fn div(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            fn rem(self, other: Self) -> Self {
                if other == 0 { self } else { self.wrapping_rem(other) }
            }
            fn abs(self) -> Self {
                let abs: fn($name) -> $name = $abs;
                abs(self)
            }
            fn low_24(self) -> Self {
                // Only 32-bit types get here; the shifts are taken modulo the width for the others.
                self.wrapping_shl(8).wrapping_shr(8)
            }
        }
    )*};
}

number! {
    u16, u32, |value| value;
    i16, i32, i16::wrapping_abs;
    u32, u64, |value| value;
    i32, i64, i32::wrapping_abs;
    u64, u128, |value| value;
    i64, i128, i64::wrapping_abs;
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{narrow, wide};

    fn n(form: &str, from: &[u32]) -> u32 {
        narrow(&format!("{form}.u32"), from)
    }

    #[test]
    fn sums_and_differences_wrap_or_saturate() {
        assert_eq!(n("add", &[u32::MAX, 2]), 1);
        assert_eq!(n("sub", &[1, 2]), u32::MAX);
        assert_eq!(narrow("add.sat.s32", &[i32::MAX as u32, 1]), i32::MAX as u32);
        assert_eq!(narrow("sub.sat.s32", &[i32::MIN as u32, 1]), i32::MIN as u32);
        assert_eq!(narrow("add.s16", &[0x7fff, 1]) as u16, 0x8000);
        assert_eq!(wide("add.s64", &[u64::MAX, 2]), 1);
        assert_eq!(wide("sub.s64", &[1, 2]), u64::MAX);
        assert_eq!(narrow("sad.u32", &[3, 10, 5]), 12);
        assert_eq!(narrow("sad.s32", &[3, -10i32 as u32, 5]), 18);
    }

    #[test]
    fn products_keep_their_low_high_or_all_bits() {
        // 0xD2511F53 is Philox's first multiplier; 0xD2511F53 * 0x12345678 = 0xEF4B3B8096890E8.
        assert_eq!(n("mul.lo", &[0xD2511F53, 0x12345678]), 0x0968_90E8);
        assert_eq!(n("mul.hi", &[0xD2511F53, 0x12345678]), 0x0EF4_B3B8);
        assert_eq!(narrow("mul.hi.s32", &[-3i32 as u32, 5]), u32::MAX);
        assert_eq!(narrow("mul.lo.s32", &[-3i32 as u32, 5]), -15i32 as u32);
        assert_eq!(wide("mul.hi.u64", &[1 << 63, 6]), 3);
        assert_eq!(wide("mul.lo.s64", &[-3i64 as u64, 5]), -15i64 as u64);
        assert_eq!(narrow("mad.lo.s32", &[7, 6, 5]), 47);
        assert_eq!(narrow("mad.hi.u32", &[1 << 31, 6, 5]), 8);
        assert_eq!(wide("mad.lo.s64", &[7, 6, 5]), 47);
        assert_eq!(narrow("mad.hi.s32", &[-3i32 as u32, 5, 5]), 4);
        assert_eq!(narrow("mul.lo.u16", &[300, 300]) as u16, 24_464);
        assert_eq!(narrow("mul.hi.u16", &[300, 300]) as u16, 1);
        assert_eq!(narrow("mul.hi.s16", &[-3i32 as u32, 5]) as u16, 0xffff);
        assert_eq!(narrow("mad.lo.s16", &[300, 300, 1]) as u16, 24_465);
        assert_eq!(wide("mul.hi.s64", &[-3i64 as u64, 5]), u64::MAX);
        assert_eq!(wide("mad.hi.u64", &[1 << 63, 6, 5]), 8);
        assert_eq!(narrow("mul24.lo.u32", &[0xff00_0003, 5]), 15);
        assert_eq!(narrow("mul24.lo.s32", &[0x00ff_ffff, 5]), -5i32 as u32);
        assert_eq!(narrow("mad24.lo.u32", &[0xff00_0003, 5, 1]), 16);
    }

    #[test]
    fn wide_products_have_twice_the_bits() {
        use crate::instructions::testing::run;
        assert_eq!(run("mul.wide.u32 %rd0, %r1, %r2;", &[0, u32::MAX, u32::MAX], &[]).1[0], 0xffff_fffe_0000_0001);
        assert_eq!(run("mul.wide.s32 %rd0, %r1, %r2;", &[0, u32::MAX, 5], &[]).1[0], -5i64 as u64);
        assert_eq!(run("mul.wide.u16 %r0, %r1, %r2;", &[0, 0xffff, 0xffff], &[]).0[0], 0xfffe_0001);
        assert_eq!(run("mul.wide.s16 %r0, %r1, %r2;", &[0, 0xffff, 3], &[]).0[0], -3i32 as u32);
        assert_eq!(run("mad.wide.u32 %rd0, %r1, %r2, %rd1;", &[0, 1 << 31, 2], &[0, 7]).1[0], (1 << 32) + 7);
        assert_eq!(run("mad.wide.s32 %rd0, %r1, %r2, %rd1;", &[0, u32::MAX, 2], &[0, 7]).1[0], 5);
    }

    #[test]
    fn quotients_round_to_zero() {
        assert_eq!(narrow("div.s32", &[-7i32 as u32, 2]), -3i32 as u32);
        assert_eq!(narrow("rem.s32", &[-7i32 as u32, 2]), -1i32 as u32);
        assert_eq!(narrow("div.u32", &[u32::MAX, 2]), 0x7fff_ffff);
        assert_eq!(narrow("div.s32", &[i32::MIN as u32, u32::MAX]), i32::MIN as u32);
        assert_eq!(narrow("div.u32", &[7, 0]), u32::MAX);
        assert_eq!(narrow("rem.u32", &[7, 0]), 7);
        assert_eq!(narrow("div.u16", &[0xffff, 2]) as u16, 0x7fff);
        assert_eq!(narrow("rem.s16", &[-7i32 as u32, 2]) as u16, 0xffff);
        assert_eq!(wide("div.u64", &[1 << 40, 1000]), 1_099_511_627);
        assert_eq!(wide("rem.u64", &[1 << 40, 1000]), 776);
        assert_eq!(wide("div.s64", &[-7i64 as u64, 2]), -3i64 as u64);
        assert_eq!(wide("rem.s64", &[-7i64 as u64, 2]), -1i64 as u64);
    }

    #[test]
    fn order_and_sign_follow_the_type() {
        assert_eq!(narrow("min.u32", &[u32::MAX, 1]), 1);
        assert_eq!(narrow("min.s32", &[u32::MAX, 1]), u32::MAX);
        assert_eq!(narrow("max.u32", &[u32::MAX, 1]), u32::MAX);
        assert_eq!(narrow("max.s32", &[u32::MAX, 1]), 1);
        assert_eq!(narrow("min.s16", &[0xffff, 1]) as u16, 0xffff);
        assert_eq!(narrow("max.u16", &[0xffff, 1]) as u16, 0xffff);
        assert_eq!(wide("max.s64", &[u64::MAX, 1]), 1);
        assert_eq!([wide("min.u64", &[u64::MAX, 1]), wide("min.s64", &[u64::MAX, 1])], [1, u64::MAX]);
        assert_eq!(wide("max.u64", &[u64::MAX, 1]), u64::MAX);
        assert_eq!([narrow("abs.s16", &[0xfffb]) as u16, narrow("neg.s16", &[5]) as u16], [5, 0xfffb]);
        assert_eq!(narrow("sub.u16", &[1, 2]) as u16, 0xffff);
        assert_eq!(narrow("abs.s32", &[-5i32 as u32]), 5);
        assert_eq!(narrow("neg.s32", &[5]), -5i32 as u32);
        assert_eq!(wide("neg.s64", &[5]), -5i64 as u64);
        assert_eq!(wide("abs.s64", &[-5i64 as u64]), 5);
    }

    #[test]
    fn forms_that_ptx_does_not_have_are_refused() {
        use crate::instructions::testing::refused;
        refused("mul.u32 %r0, %r1, %r2;");
        refused("mul.wide.u64 %rd0, %rd1, %rd2;");
        refused("add.sat.u32 %r0, %r1, %r2;");
        refused("neg.u32 %r0, %r1;");
        refused("add.u32 %r0, %r1;");
        refused("add.u32 %rd0, %r1, %r2;");
        refused("add.cc.u32 %r0, %r1, %r2;");
    }
}
