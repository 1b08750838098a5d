//! Instructions on bits.

use crate::machine::{Register, Registers, binary, ternary, unary};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// An operation on bits.
#[derive(Debug, Clone)]
pub struct Bits {
    operation: Operation,
    /// The bits of the operands: 16, 32 or 64.
    width: u32,
    to: Register,
    from: [Register; 4],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    LogicalNot,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Funnel { left: bool, wrap: bool },
    Extract { signed: bool },
    Insert,
    Reverse,
    LeadingZeros,
    Count,
    FindHighest { signed: bool, shift: bool },
    Permute,
    Lookup(u8),
}

impl Bits {
    /// `and`, `or`, `xor`, `not`, `cnot`, `shl`, `shr`, `shf`, `bfe`, `bfi`, `brev`, `clz`, `popc`, `bfind`, `prmt` and `lop3`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Bits, Error> {
        use Operation::*;
        let ty = form.ty()?;
        let width = ty.size() as u32 * 8;
        // The widths of an instruction, and the types of its operands: `T` is its own type, `R` is 32 bits.
        let (operation, widths, shape) = match form.base() {
            "and" => (And, 16..=64, "TTT"),
            "or" => (Or, 16..=64, "TTT"),
            "xor" => (Xor, 16..=64, "TTT"),
            "not" => (Not, 16..=64, "TT"),
            "cnot" => (LogicalNot, 16..=64, "TT"),
            "shl" => (ShiftLeft, 16..=64, "TTR"),
            "shr" if ty.is_signed() => (ShiftRightSigned, 16..=64, "TTR"),
            "shr" => (ShiftRight, 16..=64, "TTR"),
            "shf" => {
                let left = form.take("l");
                if !left && !form.take("r") {
                    return Err(form.unsupported());
                }
                let wrap = form.take("wrap");
                if !wrap && !form.take("clamp") {
                    return Err(form.unsupported());
                }
                (Funnel { left, wrap }, 32..=32, "TTTR")
            }
            "bfe" => (Extract { signed: ty.is_signed() }, 32..=64, "TTRR"),
            "bfi" => (Insert, 32..=64, "TTTRR"),
            "brev" => (Reverse, 32..=64, "TT"),
            "clz" => (LeadingZeros, 32..=64, "RT"),
            "popc" => (Count, 32..=64, "RT"),
            "bfind" => (FindHighest { signed: ty.is_signed(), shift: form.take("shiftamt") }, 32..=64, "RT"),
            "prmt" => (Permute, 32..=32, "TTTR"),
            "lop3" => {
                let Some(Operand::Integer(table @ 0..=255)) = operands.get(4) else { return Err(form.unsupported()) };
                (Lookup(*table as u8), 32..=32, "TTTT")
            }
            _ => return Err(form.unsupported()),
        };
        if ty.is_float() || !widths.contains(&width) {
            return Err(form.unsupported());
        }
        let operands = if matches!(operation, Lookup(_)) { &operands[..operands.len() - 1] } else { operands };
        form.operands(operands, shape.len())?;
        let types = shape.chars().map(|kind| if kind == 'T' { ty } else { Type::U32 });
        let mut found = [0; 5];
        for (place, (operand, ty)) in operands.iter().zip(types).enumerate() {
            found[place] = if place == 0 { decoder.target(operand, ty)? } else { decoder.source(operand, ty)? };
        }
        let [to, from @ ..] = found;
        Ok(Bits { operation, width, to, from })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        let &Bits { operation, width, to, from: [a, b, c, d] } = self;
        let wide = width == 64;
        macro_rules! either {
            (|$($name:ident),+| $body:expr => $run:ident $from:expr) => {
                if wide {
                    $run(registers, mask, to, $from, |$($name: u64),+| $body)
                } else {
                    $run(registers, mask, to, $from, |$($name: u32),+| $body)
                }
            };
        }
        match operation {
            Operation::And => either!(|a, b| a & b => binary [a, b]),
            Operation::Or => either!(|a, b| a | b => binary [a, b]),
            Operation::Xor => either!(|a, b| a ^ b => binary [a, b]),
            Operation::Not => either!(|a| !a => unary a),
            Operation::LogicalNot if width == 16 => unary(registers, mask, to, a, |a: u16| u16::from(a == 0)),
            Operation::LogicalNot if wide => unary(registers, mask, to, a, |a: u64| u64::from(a == 0)),
            Operation::LogicalNot => unary(registers, mask, to, a, |a: u32| u32::from(a == 0)),
            // Amounts beyond the width leave nothing but the sign.
            Operation::ShiftLeft if width == 16 => {
                binary(registers, mask, to, [a, b], |a: u16, by: u32| a.checked_shl(by).unwrap_or(0))
            }
            Operation::ShiftLeft if wide => {
                binary(registers, mask, to, [a, b], |a: u64, by: u32| a.checked_shl(by).unwrap_or(0))
            }
            Operation::ShiftLeft => {
                binary(registers, mask, to, [a, b], |a: u32, by: u32| a.checked_shl(by).unwrap_or(0))
            }
            Operation::ShiftRight if width == 16 => {
                binary(registers, mask, to, [a, b], |a: u16, by: u32| a.checked_shr(by).unwrap_or(0))
            }
            Operation::ShiftRight if wide => {
                binary(registers, mask, to, [a, b], |a: u64, by: u32| a.checked_shr(by).unwrap_or(0))
            }
            Operation::ShiftRight => {
                binary(registers, mask, to, [a, b], |a: u32, by: u32| a.checked_shr(by).unwrap_or(0))
            }
            Operation::ShiftRightSigned if width == 16 => {
                binary(registers, mask, to, [a, b], |a: i16, by: u32| a >> by.min(15))
            }
            Operation::ShiftRightSigned if wide => {
                binary(registers, mask, to, [a, b], |a: i64, by: u32| a >> by.min(63))
            }
            Operation::ShiftRightSigned => binary(registers, mask, to, [a, b], |a: i32, by: u32| a >> by.min(31)),
            Operation::Funnel { left, wrap } => {
                ternary(registers, mask, to, [a, b, c], |low: u32, high: u32, by: u32| {
                    let by = if wrap { by & 31 } else { by.min(32) };
                    let both = u64::from(high) << 32 | u64::from(low);
                    if left { ((both << by) >> 32) as u32 } else { (both >> by) as u32 }
                })
            }
            Operation::Extract { signed } if wide => {
                ternary(registers, mask, to, [a, b, c], |a: u64, at: u32, length: u32| {
                    extract(a, 64, at, length, signed)
                })
            }
            Operation::Extract { signed } => ternary(registers, mask, to, [a, b, c], |a: u32, at: u32, length: u32| {
                let a = if signed { i64::from(a as i32) as u64 } else { u64::from(a) };
                extract(a, 32, at, length, signed) as u32
            }),
            Operation::Insert if wide => insert_wide(registers, mask, to, [a, b, c, d]),
            Operation::Insert => insert_narrow(registers, mask, to, [a, b, c, d]),
            Operation::Reverse => either!(|a| a.reverse_bits() => unary a),
            Operation::LeadingZeros => either!(|a| a.leading_zeros() => unary a),
            Operation::Count => either!(|a| a.count_ones() => unary a),
            Operation::FindHighest { signed, shift } if wide => unary(registers, mask, to, a, |a: u64| {
                let a = if signed && (a as i64) < 0 { !a } else { a };
                highest(63u32.checked_sub(a.leading_zeros()), 63, shift)
            }),
            Operation::FindHighest { signed, shift } => unary(registers, mask, to, a, |a: u32| {
                let a = if signed && (a as i32) < 0 { !a } else { a };
                highest(31u32.checked_sub(a.leading_zeros()), 31, shift)
            }),
            Operation::Permute => ternary(registers, mask, to, [a, b, c], permute),
            Operation::Lookup(table) => {
                ternary(registers, mask, to, [a, b, c], |a: u32, b: u32, c: u32| lookup(table, a, b, c))
            }
        }
    }
}

/// `bfe`: `length` bits from `at` on; beyond the width the sign, or zero.
fn extract(a: u64, width: u32, at: u32, length: u32, signed: bool) -> u64 {
    let (at, length) = (at & 255, length & 255);
    let sign = if signed { (a as i64 >> 63) as u64 } else { 0 };
    let top = (at + length).saturating_sub(1).min(width - 1);
    let fill = if signed && length > 0 && (a >> top) & 1 == 1 { u64::MAX } else { 0 };
    let shifted = if at >= 64 {
        sign
    } else if signed {
        (a as i64 >> at) as u64
    } else {
        a >> at
    };
    match length {
        0 => 0,
        1..=63 => {
            let low = (1u64 << length) - 1;
            shifted & low | fill & !low
        }
        _ => shifted,
    }
}

/// `bfi`: the low `length` bits of `field` stand in `into` from `at` on.
fn insert(field: u64, into: u64, at: u32, length: u32, width: u32) -> u64 {
    let (at, length) = (at & 255, length & 255);
    if at >= width || length == 0 {
        return into;
    }
    let low = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    into & !(low << at) | (field & low) << at
}

fn insert_narrow(registers: &mut Registers, mask: u32, to: Register, [field, into, at, length]: [Register; 4]) {
    let length = registers.narrow[usize::from(length)];
    let field = registers.narrow[usize::from(field)];
    let at = registers.narrow[usize::from(at)];
    let into = registers.narrow[usize::from(into)];
    let values = std::array::from_fn(|lane| {
        insert(u64::from(field[lane]), u64::from(into[lane]), at[lane], length[lane], 32) as u32
    });
    crate::machine::Value::write(registers, to, &values, mask);
}

fn insert_wide(registers: &mut Registers, mask: u32, to: Register, [field, into, at, length]: [Register; 4]) {
    let length = registers.narrow[usize::from(length)];
    let field = registers.wide[usize::from(field)];
    let at = registers.narrow[usize::from(at)];
    let into = registers.wide[usize::from(into)];
    let values = std::array::from_fn(|lane| insert(field[lane], into[lane], at[lane], length[lane], 64));
    crate::machine::Value::write(registers, to, &values, mask);
}

/// `bfind`: the place of the highest bit, or the shift that brings it to the top; all ones where there is none.
fn highest(place: Option<u32>, top: u32, shift: bool) -> u32 {
    match place {
        None => u32::MAX,
        Some(place) if shift => top - place,
        Some(place) => place,
    }
}

/// `prmt`: each nibble of the selector picks one of eight bytes, or its sign eight times.
fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let picked = std::array::from_fn(|place| {
        let nibble = selector >> (4 * place);
        let byte = bytes[(nibble & 7) as usize];
        if nibble & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 }
    });
    u32::from_le_bytes(picked)
}

/// `lop3`: any function of three bits, given by its table.
fn lookup(table: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |result, row| {
        let pick = |value: u32, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
        result | pick(a, 2) & pick(b, 1) & pick(c, 0)
    })
}

#[cfg(test)]
mod tests {
    use crate::instructions::testing::{narrow, refused, run, wide};

    #[test]
    fn logic_works_on_every_width() {
        assert_eq!(narrow("and.b32", &[0b1100, 0b1010]), 0b1000);
        assert_eq!(narrow("or.b32", &[0b1100, 0b1010]), 0b1110);
        assert_eq!(narrow("xor.b32", &[0b1100, 0b1010]), 0b0110);
        assert_eq!(narrow("not.b32", &[0]), u32::MAX);
        assert_eq!(narrow("xor.b16", &[0xffff, 0x00ff]) as u16, 0xff00);
        assert_eq!(narrow("cnot.b32", &[0]), 1);
        assert_eq!(narrow("cnot.b32", &[9]), 0);
        assert_eq!(wide("and.b64", &[u64::MAX, 1 << 40]), 1 << 40);
        assert_eq!(wide("or.b64", &[1, 1 << 40]), (1 << 40) + 1);
        assert_eq!(wide("xor.b64", &[u64::MAX, 1]), u64::MAX - 1);
        assert_eq!(wide("not.b64", &[0]), u64::MAX);
        refused("and.f32 %f0, %f1, %f2;");
    }

    #[test]
    fn shifts_beyond_the_width_leave_the_sign() {
        assert_eq!(narrow("shl.b32", &[1, 31]), 1 << 31);
        assert_eq!(narrow("shl.b32", &[1, 32]), 0);
        assert_eq!(narrow("shr.u32", &[1 << 31, 31]), 1);
        assert_eq!(narrow("shr.u32", &[1 << 31, 32]), 0);
        assert_eq!(narrow("shr.s32", &[1 << 31, 30]), -2i32 as u32);
        assert_eq!(narrow("shr.s32", &[1 << 31, 99]), u32::MAX);
        assert_eq!(narrow("shr.b32", &[1 << 31, 99]), 0);
        assert_eq!(narrow("shl.b16", &[0xffff, 8]) as u16, 0xff00);
        assert_eq!(narrow("shr.u16", &[0x8000, 15]), 1);
        assert_eq!(narrow("shr.s16", &[0x8000, 20]) as u16, 0xffff);
        assert_eq!(run("shl.b64 %rd0, %rd1, %r1;", &[0, 40], &[0, 1]).1[0], 1 << 40);
        assert_eq!(run("shl.b64 %rd0, %rd1, %r1;", &[0, 64], &[0, 1]).1[0], 0);
        assert_eq!(run("shr.u64 %rd0, %rd1, 63;", &[0, 40], &[0, 1 << 63]).1[0], 1);
        assert_eq!(run("shr.s64 %rd0, %rd1, 99;", &[0, 40], &[0, 1 << 63]).1[0], u64::MAX);
    }

    #[test]
    fn a_funnel_shift_takes_bits_of_both() {
        // low 0xAAAAAAAA, high 0x12345678
        assert_eq!(narrow("shf.l.wrap.b32", &[0xAAAA_AAAA, 0x1234_5678, 8]), 0x3456_78AA);
        assert_eq!(narrow("shf.l.wrap.b32", &[0xAAAA_AAAA, 0x1234_5678, 40]), 0x3456_78AA);
        assert_eq!(narrow("shf.l.clamp.b32", &[0xAAAA_AAAA, 0x1234_5678, 40]), 0xAAAA_AAAA);
        assert_eq!(narrow("shf.r.wrap.b32", &[0xAAAA_AAAA, 0x1234_5678, 8]), 0x78AA_AAAA);
        assert_eq!(narrow("shf.r.clamp.b32", &[0xAAAA_AAAA, 0x1234_5678, 99]), 0x1234_5678);
        refused("shf.l.b32 %r0, %r1, %r2, %r3;");
    }

    #[test]
    fn fields_are_taken_out_and_put_in() {
        assert_eq!(narrow("bfe.u32", &[0xABCD_1234, 8, 12]), 0xD12);
        assert_eq!(narrow("bfe.s32", &[0x0000_0F00, 8, 4]), u32::MAX);
        assert_eq!(narrow("bfe.s32", &[0x0000_0700, 8, 4]), 7);
        assert_eq!(narrow("bfe.u32", &[u32::MAX, 28, 8]), 0xF);
        assert_eq!(narrow("bfe.s32", &[0x8000_0000, 28, 8]), -8i32 as u32);
        assert_eq!(narrow("bfe.u32", &[u32::MAX, 4, 0]), 0);
        assert_eq!(narrow("bfe.u32", &[u32::MAX, 40, 4]), 0);
        assert_eq!(run("bfe.u64 %rd0, %rd1, 36, 8;", &[0], &[0, 0xAB << 36]).1[0], 0xAB);
        assert_eq!(run("bfe.s64 %rd0, %rd1, 36, 8;", &[0], &[0, 0xAB << 36]).1[0], -85i64 as u64);
        assert_eq!(narrow("bfi.b32", &[0xAB, 0xFFFF_FFFF, 8, 8]), 0xFFFF_ABFF);
        assert_eq!(narrow("bfi.b32", &[0xAB, 0x1234_5678, 32, 8]), 0x1234_5678);
        assert_eq!(narrow("bfi.b32", &[0xAB, 0, 28, 8]), 0xB000_0000);
        assert_eq!(run("bfi.b64 %rd0, %rd1, %rd2, 32, 32;", &[0], &[0, 7, 5]).1[0], (7 << 32) + 5);
    }

    #[test]
    fn bits_are_counted_found_and_reversed() {
        assert_eq!(narrow("popc.b32", &[0xF0F0]), 8);
        assert_eq!(narrow("clz.b32", &[1]), 31);
        assert_eq!(narrow("clz.b32", &[0]), 32);
        assert_eq!(narrow("brev.b32", &[1]), 1 << 31);
        assert_eq!(narrow("bfind.u32", &[0x100]), 8);
        assert_eq!(narrow("bfind.u32", &[0]), u32::MAX);
        assert_eq!(narrow("bfind.s32", &[-1i32 as u32]), u32::MAX);
        assert_eq!(narrow("bfind.s32", &[-5i32 as u32]), 2);
        assert_eq!(narrow("bfind.shiftamt.u32", &[0x100]), 23);
        assert_eq!(run("popc.b64 %r0, %rd0;", &[0], &[u64::MAX]).0[0], 64);
        assert_eq!(run("clz.b64 %r0, %rd0;", &[0], &[1]).0[0], 63);
        assert_eq!(run("bfind.u64 %r0, %rd0;", &[0], &[1 << 40]).0[0], 40);
        assert_eq!(wide("brev.b64", &[1]), 1 << 63);
    }

    #[test]
    fn bytes_are_picked_by_nibbles() {
        assert_eq!(narrow("prmt.b32", &[0x3322_1100, 0x7766_5544, 0x5410]), 0x5544_1100);
        assert_eq!(narrow("prmt.b32", &[0x3322_1180, 0x7766_5544, 0x0123]), 0x8011_2233);
        assert_eq!(narrow("prmt.b32", &[0x0000_0080, 0x0000_007F, 0x00C8]), 0x8080_00FF);
        refused("prmt.b32.f4e %r0, %r1, %r2, %r3;");
    }

    #[test]
    fn a_table_of_three_bits_is_any_function() {
        let (a, b, c) = (0xF0F0_1234, 0xCCCC_5678, 0xAAAA_9ABC);
        let with = |table: u32| run(&format!("lop3.b32 %r0, %r1, %r2, %r3, {table};"), &[0, a, b, c], &[]).0[0];
        assert_eq!(with(0x80), a & b & c);
        assert_eq!(with(0xFE), a | b | c);
        assert_eq!(with(0x96), a ^ b ^ c);
        assert_eq!(with(0xCA), a & b | !a & c);
    }
}
