//! `mov` and `cvta`: values from place to place.

use crate::machine::{Register, Registers, Value, binary, map, unary};
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// A move.
#[derive(Debug, Clone)]
pub enum Move {
    /// 32 bits or fewer.
    Narrow(Register, Register),
    /// 64 bits.
    Wide(Register, Register),
    /// 64 bits, with something added: an address from one space to another.
    Offset(Register, Register, u64),
    /// Two registers of 32 bits make one of 64.
    Join64(Register, [Register; 2]),
    /// Two registers of 16 bits make one of 32.
    Join32(Register, [Register; 2]),
    /// One register of 64 bits becomes two of 32.
    Split64([Register; 2], Register),
    /// One register of 32 bits becomes two of 16.
    Split32([Register; 2], Register),
}

impl Move {
    /// `mov` and `cvta`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Move, Error> {
        form.operands(operands, 2)?;
        if form.base() == "cvta" {
            let to = form.take("to");
            let window = match () {
                () if form.take("shared") => SHARED_WINDOW,
                () if form.take("local") => LOCAL_WINDOW,
                () if form.take("global") || form.take("const") => 0,
                () => return Err(form.unsupported()),
            };
            if form.ty()? != Type::U64 {
                return Err(form.unsupported());
            }
            let registers = (decoder.target(&operands[0], Type::U64)?, decoder.source(&operands[1], Type::U64)?);
            return Ok(Move::Offset(registers.0, registers.1, if to { window.wrapping_neg() } else { window }));
        }
        let ty = form.ty()?;
        let half = match ty.size() {
            8 => Type::B32,
            _ => Type::B16,
        };
        Ok(match (&operands[0], &operands[1]) {
            (Operand::Vector(parts), from) if parts.len() == 2 && ty.size() >= 4 => {
                let to = [decoder.target(&parts[0], half)?, decoder.target(&parts[1], half)?];
                let from = decoder.source(from, ty)?;
                if ty.size() == 8 { Move::Split64(to, from) } else { Move::Split32(to, from) }
            }
            (to, Operand::Vector(parts)) if parts.len() == 2 && ty.size() >= 4 => {
                let from = [decoder.source(&parts[0], half)?, decoder.source(&parts[1], half)?];
                let to = decoder.target(to, ty)?;
                if ty.size() == 8 { Move::Join64(to, from) } else { Move::Join32(to, from) }
            }
            (to, from) => {
                let (to, from) = (decoder.target(to, ty)?, decoder.source(from, ty)?);
                if ty.size() == 8 { Move::Wide(to, from) } else { Move::Narrow(to, from) }
            }
        })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        match *self {
            Move::Narrow(to, from) => unary(registers, mask, to, from, |value: u32| value),
            Move::Wide(to, from) => unary(registers, mask, to, from, |value: u64| value),
            Move::Offset(to, from, offset) => unary(registers, mask, to, from, |value: u64| value.wrapping_add(offset)),
            Move::Join64(to, from) => {
                binary(registers, mask, to, from, |low: u32, high: u32| u64::from(high) << 32 | u64::from(low));
            }
            Move::Join32(to, from) => {
                binary(registers, mask, to, from, |low: u16, high: u16| u32::from(high) << 16 | u32::from(low));
            }
            // Both parts are taken before one is written, for a target may be the operand.
            Move::Split64([low, high], from) => {
                let row = u64::read(registers, from);
                u32::write(registers, low, &map(&row, |value| value as u32), mask);
                u32::write(registers, high, &map(&row, |value| (value >> 32) as u32), mask);
            }
            Move::Split32([low, high], from) => {
                let row = u32::read(registers, from);
                u16::write(registers, low, &map(&row, |value| value as u16), mask);
                u16::write(registers, high, &map(&row, |value| (value >> 16) as u16), mask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{refused, run};

    #[test]
    fn values_move_as_they_are() {
        assert_eq!(run("mov.u32 %r0, %r1;", &[0, 7], &[]).0[0], 7);
        assert_eq!(run("mov.f32 %f0, 0f3F800000;", &[0], &[]).0[0], 1f32.to_bits());
        assert_eq!(run("mov.b64 %rd0, %rd1;", &[], &[0, 1 << 60]).1[0], 1 << 60);
        assert_eq!(run("mov.f64 %fd0, 0d3FF0000000000000;", &[], &[0]).1[0], 1f64.to_bits());
        assert_eq!(run("mov.u64 %rd0, -1;", &[], &[0]).1[0], u64::MAX);
        assert_eq!(run("mov.u16 %r0, 5;", &[0], &[]).0[0], 5);
    }

    #[test]
    fn registers_join_and_split() {
        assert_eq!(run("mov.b64 %rd0, {%r1, %r2};", &[0, 1, 2], &[0]).1[0], (2 << 32) + 1);
        assert_eq!(run("mov.b32 %r0, {%r1, %r2};", &[0, 0xffff_0001, 2], &[]).0[0], 0x0002_0001);
        let split = run("mov.b64 {%r0, %r1}, %rd0;", &[0, 0], &[(2 << 32) + 1]).0;
        assert_eq!(split[..2], [1, 2]);
        let split = run("mov.b32 {%r0, %r1}, %r0;", &[0x0002_0001, 0], &[]).0;
        assert_eq!(split[..2], [1, 2]);
        assert_eq!(run("mov.b64 {_, %r1}, %rd0;", &[0, 0], &[(2 << 32) + 1]).0[1], 2);
        refused("mov.b64 {%r0, %r1, %r2}, %rd0;");
    }

    #[test]
    fn special_registers_tell_each_thread_apart() {
        let rows = run(
            "mov.u32 %r0, %tid.x; mov.u32 %r1, %lanemask_lt; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.y;",
            &[],
            &[],
        )
        .2;
        assert_eq!(rows[0][..3], [0, 1, 2]);
        assert_eq!(rows[1][..3], [0, 1, 3]);
        assert_eq!((rows[2][9], rows[3][9]), (32, 0));
        refused("mov.u32 %r0, %clock;");
        refused("mov.u64 %rd0, %tid.x;");
    }

    #[test]
    fn addresses_change_their_space() {
        use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW};
        assert_eq!(run("cvta.to.global.u64 %rd0, %rd1;", &[], &[0, 99]).1[0], 99);
        assert_eq!(run("cvta.shared.u64 %rd0, %rd1;", &[], &[0, 8]).1[0], SHARED_WINDOW + 8);
        assert_eq!(run("cvta.to.shared.u64 %rd0, %rd1;", &[], &[0, SHARED_WINDOW + 8]).1[0], 8);
        assert_eq!(run("cvta.local.u64 %rd0, %rd1;", &[], &[0, 8]).1[0], LOCAL_WINDOW + 8);
        refused("cvta.u64 %rd0, %rd1;");
    }
}
