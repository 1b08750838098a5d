//! Comparisons, choices by them, and logic on predicates.

use super::float::flush;
use crate::machine::{Register, Registers, Value, WARP, lanes};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// `setp`: compares, joins with another predicate, and sets one or two.
#[derive(Debug, Clone)]
pub struct Compare {
    comparison: Comparison,
    ty: Type,
    flush: bool,
    join: Option<(Join, Register, bool)>,
    to: Register,
    /// Gets the joined inverse of the comparison.
    inverse: Option<Register>,
    from: [Register; 2],
}

/// What may hold between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
    /// Whether it holds when one is NaN.
    unordered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
    Xor,
}

impl Join {
    fn apply(self, a: u32, b: u32) -> u32 {
        match self {
            Join::And => a & b,
            Join::Or => a | b,
            Join::Xor => a ^ b,
        }
    }
}

impl Comparison {
    fn decode(form: &mut Form) -> Option<Comparison> {
        const NAMES: [(&str, [bool; 4]); 18] = [
            ("eq", [false, true, false, false]),
            ("ne", [true, false, true, false]),
            ("lt", [true, false, false, false]),
            ("le", [true, true, false, false]),
            ("gt", [false, false, true, false]),
            ("ge", [false, true, true, false]),
            ("lo", [true, false, false, false]),
            ("ls", [true, true, false, false]),
            ("hi", [false, false, true, false]),
            ("hs", [false, true, true, false]),
            ("equ", [false, true, false, true]),
            ("neu", [true, false, true, true]),
            ("ltu", [true, false, false, true]),
            ("leu", [true, true, false, true]),
            ("gtu", [false, false, true, true]),
            ("geu", [false, true, true, true]),
            ("num", [true, true, true, false]),
            ("nan", [false, false, false, true]),
        ];
        let (_, [less, equal, greater, unordered]) = NAMES.into_iter().find(|(name, _)| form.take(name))?;
        Some(Comparison { less, equal, greater, unordered })
    }

    #[inline(always)]
    fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        let (less, equal, greater) = (a < b, a == b, a > b);
        (self.less & less)
            | (self.equal & equal)
            | (self.greater & greater)
            | (self.unordered & !(less | equal | greater))
    }
}

impl Compare {
    /// `setp`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Compare, Error> {
        let ty = form.ty()?;
        if matches!(ty, Type::Predicate | Type::F16 | Type::B8 | Type::U8 | Type::S8) {
            return Err(form.unsupported());
        }
        let comparison = Comparison::decode(form).ok_or_else(|| form.unsupported())?;
        let flush = form.take("ftz");
        let join = match () {
            () if form.take("and") => Some(Join::And),
            () if form.take("or") => Some(Join::Or),
            () if form.take("xor") => Some(Join::Xor),
            () => None,
        };
        form.operands(operands, if join.is_some() { 4 } else { 3 })?;
        let (to, inverse) = match &operands[0] {
            Operand::Pair(to, inverse) => (decoder.predicate_named(to)?, Some(decoder.predicate_named(inverse)?)),
            Operand::Name(to) => (decoder.predicate_named(to)?, None),
            _ => return Err(form.unsupported()),
        };
        let from = [decoder.source(&operands[1], ty)?, decoder.source(&operands[2], ty)?];
        let join = match join {
            Some(join) => {
                let (register, negated) = decoder.predicate(&operands[3])?;
                Some((join, register, negated))
            }
            None => None,
        };
        Ok(Compare { comparison, ty, flush, join, to, inverse, from })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        let holds = match self.ty {
            Type::U16 | Type::B16 => self.compare::<u16>(registers),
            Type::S16 => self.compare::<i16>(registers),
            Type::U32 | Type::B32 => self.compare::<u32>(registers),
            Type::S32 => self.compare::<i32>(registers),
            Type::U64 | Type::B64 => self.compare::<u64>(registers),
            Type::S64 => self.compare::<i64>(registers),
            Type::F64 => self.compare::<f64>(registers),
            _ if self.flush => {
                let [a, b] = self.from.map(|register| f32::read(registers, register).map(flush));
                bits(|lane| self.comparison.holds(a[lane], b[lane]))
            }
            _ => self.compare::<f32>(registers),
        };
        let joined = |registers: &Registers, holds: u32| match self.join {
            Some((join, with, negated)) => join.apply(holds, read(registers, with, negated)),
            None => holds,
        };
        let (value, inverse) = (joined(registers, holds), joined(registers, !holds));
        write(registers, self.to, value, mask);
        if let Some(to) = self.inverse {
            write(registers, to, inverse, mask);
        }
    }

    fn compare<T: Value + PartialOrd>(&self, registers: &Registers) -> u32 {
        let [a, b] = self.from.map(|register| T::read(registers, register));
        let comparison = self.comparison;
        bits(|lane| comparison.holds(a[lane], b[lane]))
    }
}

#[inline(always)]
fn bits(holds: impl Fn(usize) -> bool) -> u32 {
    (0..WARP).fold(0, |bits, lane| bits | u32::from(holds(lane)) << lane)
}

/// The threads for which a predicate, or its negation, is true.
#[inline(always)]
pub fn read(registers: &Registers, predicate: Register, negated: bool) -> u32 {
    let value = registers.predicates[usize::from(predicate)];
    if negated { !value } else { value }
}

/// Sets a predicate for the threads in `mask`.
#[inline(always)]
pub fn write(registers: &mut Registers, predicate: Register, value: u32, mask: u32) {
    let old = &mut registers.predicates[usize::from(predicate)];
    *old = *old & !mask | value & mask;
}

/// `selp`: one of two values, by a predicate.
#[derive(Debug, Clone)]
pub struct Select {
    wide: bool,
    to: Register,
    from: [Register; 2],
    by: (Register, bool),
}

impl Select {
    /// `selp`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Select, Error> {
        let ty = form.ty()?;
        if ty == Type::Predicate || ty.size() == 1 {
            return Err(form.unsupported());
        }
        form.operands(operands, 4)?;
        Ok(Select {
            wide: ty.size() == 8,
            to: decoder.target(&operands[0], ty)?,
            from: [decoder.source(&operands[1], ty)?, decoder.source(&operands[2], ty)?],
            by: decoder.predicate(&operands[3])?,
        })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        if self.wide { self.run::<u64>(registers, mask) } else { self.run::<u32>(registers, mask) }
    }

    fn run<T: Value>(&self, registers: &mut Registers, mask: u32) {
        let [a, b] = self.from.map(|register| T::read(registers, register));
        let first = read(registers, self.by.0, self.by.1);
        let mut values = b;
        lanes(first).for_each(|lane| values[lane] = a[lane]);
        T::write(registers, self.to, &values, mask);
    }
}

/// Logic on predicates: `and.pred`, `or.pred`, `xor.pred`, `not.pred` and `mov.pred`.
#[derive(Debug, Clone)]
pub struct Logic {
    join: Join,
    to: Register,
    from: [(Register, bool); 2],
}

impl Logic {
    /// An instruction on predicates.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Logic, Error> {
        let (join, count) = match form.base() {
            "and" => (Join::And, 2),
            "or" => (Join::Or, 2),
            "xor" => (Join::Xor, 2),
            "not" | "mov" => (Join::And, 1),
            _ => return Err(form.unsupported()),
        };
        form.ty()?;
        form.operands(operands, 1 + count)?;
        let Operand::Name(to) = &operands[0] else { return Err(form.unsupported()) };
        let to = decoder.predicate_named(to)?;
        let mut a = decoder.predicate(&operands[1])?;
        a.1 ^= form.base() == "not";
        let b = if count == 2 { decoder.predicate(&operands[2])? } else { a };
        Ok(Logic { join, to, from: [a, b] })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        let [a, b] = self.from.map(|(register, negated)| read(registers, register, negated));
        write(registers, self.to, self.join.apply(a, b), mask);
    }
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{holds, refused, run};

    fn float(form: &str, a: f32, b: f32) -> bool {
        holds(&format!("setp.{form}.f32 %p0, %f1, %f2;"), &[0, a.to_bits(), b.to_bits()], &[])
    }

    #[test]
    fn integers_compare_by_their_sign() {
        let minus = u32::MAX;
        for (form, expected) in
            [("lt.s32", true), ("lt.u32", false), ("ge.u32", true), ("hi.u32", true), ("ls.u32", false)]
        {
            assert_eq!(holds(&format!("setp.{form} %p0, %r1, %r2;"), &[0, minus, 1], &[]), expected, "{form}");
        }
        for (form, expected) in [
            ("eq.s32", true),
            ("ne.s32", false),
            ("le.s32", true),
            ("gt.s32", false),
            ("lo.u32", false),
            ("hs.u32", true),
        ] {
            assert_eq!(holds(&format!("setp.{form} %p0, %r1, %r2;"), &[0, 5, 5], &[]), expected, "{form}");
        }
        assert!(holds("setp.lt.s16 %p0, %r1, %r2;", &[0, 0xffff, 1], &[]));
        assert!(holds("setp.gt.u16 %p0, %r1, %r2;", &[0, 0xffff, 1], &[]));
        assert!(holds("setp.lt.s64 %p0, %rd1, %rd2;", &[], &[0, u64::MAX, 1]));
        assert!(holds("setp.gt.u64 %p0, %rd1, %rd2;", &[], &[0, u64::MAX, 1]));
        assert!(holds("setp.eq.b64 %p0, %rd1, 7;", &[], &[0, 7]));
    }

    #[test]
    fn a_nan_is_unordered() {
        let nan = f32::NAN;
        for (form, of_less, of_equal, of_nan) in [
            ("eq", false, true, false),
            ("ne", true, false, false),
            ("lt", true, false, false),
            ("le", true, true, false),
            ("gt", false, false, false),
            ("ge", false, true, false),
            ("equ", false, true, true),
            ("neu", true, false, true),
            ("ltu", true, false, true),
            ("leu", true, true, true),
            ("gtu", false, false, true),
            ("geu", false, true, true),
            ("num", true, true, false),
            ("nan", false, false, true),
        ] {
            assert_eq!(float(form, 1.0, 2.0), of_less, "{form}");
            assert_eq!(float(form, 0.0, -0.0), of_equal, "{form}");
            assert_eq!(float(form, nan, 2.0), of_nan, "{form}");
            assert_eq!(float(form, 2.0, nan), of_nan, "{form}");
        }
        assert!(float("eq.ftz", f32::from_bits(1), 0.0));
        assert!(!float("eq", f32::from_bits(1), 0.0));
        assert!(holds("setp.lt.f64 %p0, %fd1, 0d4000000000000000;", &[], &[0, 1f64.to_bits()]));
    }

    #[test]
    fn a_comparison_joins_with_a_predicate_and_gives_its_inverse() {
        // p1 is true, p2 false.
        let set = "setp.eq.s32 %p1, %r1, %r1; setp.ne.s32 %p2, %r1, %r1;";
        for (form, expected) in [
            ("setp.lt.and.s32 %p0, %r1, %r2, %p2;", false),
            ("setp.lt.and.s32 %p0, %r1, %r2, !%p2;", true),
            ("setp.gt.or.s32 %p0, %r1, %r2, %p1;", true),
            ("setp.lt.xor.s32 %p0, %r1, %r2, %p1;", false),
            ("setp.lt.s32 %p3|%p0, %r1, %r2;", false),
            ("setp.gt.and.s32 %p3|%p0, %r1, %r2, %p1;", true),
            ("and.pred %p0, %p1, %p2;", false),
            ("or.pred %p0, %p1, %p2;", true),
            ("xor.pred %p0, %p1, %p1;", false),
            ("not.pred %p0, %p2;", true),
            ("mov.pred %p0, %p1;", true),
            ("mov.pred %p0, 0;", false),
            ("mov.pred %p0, 1;", true),
            ("xor.pred %p0, %p1, 1;", false),
            ("and.pred %p0, %p1, !%p2;", true),
        ] {
            assert_eq!(holds(&format!("{set} {form}"), &[0, 1, 2], &[]), expected, "{form}");
        }
    }

    #[test]
    fn a_choice_is_by_thread() {
        let rows = run("setp.lt.u32 %p1, %laneid, 2; selp.b32 %r0, 7, %r1, %p1;", &[0, 9], &[]).2;
        assert_eq!(rows[0][..4], [7, 7, 9, 9]);
        assert_eq!(
            run("setp.eq.s32 %p1, 1, 2; selp.f32 %f0, %f1, 0f40000000, %p1;", &[0, 9], &[]).0[0],
            2f32.to_bits()
        );
        assert_eq!(run("setp.eq.s32 %p1, 1, 2; selp.u16 %r0, 5, %r1, !%p1;", &[0, 9], &[]).0[0] as u16, 5);
        assert_eq!(
            run("setp.eq.s32 %p1, 1, 2; selp.f64 %fd0, %fd1, 0d4000000000000000, %p1;", &[], &[0, 9]).1[0],
            2f64.to_bits()
        );
        assert_eq!(run("setp.eq.s32 %p1, 1, 1; selp.b64 %rd0, %rd1, 4, %p1;", &[], &[0, 3]).1[0], 3);
        refused("selp.pred %p0, %p1, %p2, %p3;");
        refused("setp.lt.pred %p0, %p1, %p2;");
        refused("setp.s32 %p0, %r1, %r2;");
    }
}
