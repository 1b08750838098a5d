//! `atom` and `red`: memory read, changed and written at once.

use super::reach::{Memories, Near, Trouble, resolve};
use crate::faults::Mistake;
use crate::machine::{Register, Registers};
use crate::memory::uninitialized;
use crate::program::{Address, Decoder, Form};
use crate::ptx::{Error, Operand, Space, Type};

/// An atomic operation.
#[derive(Debug, Clone)]
pub struct Atomic {
    operation: Operation,
    ty: Type,
    space: Space,
    address: Address,
    /// Where the old value goes; `red` has none.
    to: Option<Register>,
    from: [Register; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Increment,
    Decrement,
    Exchange,
    CompareAndSwap,
}

impl Atomic {
    /// `atom` and `red`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Atomic, Error> {
        use Operation::*;
        use Type::{B32, B64, F32, F64, S32, S64, U32, U64};
        form.take_all(&["relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys"]);
        let space = Space::decode(form);
        let ty = form.ty()?;
        let (operation, types): (_, &[Type]) = match () {
            () if form.take("add") => (Add, &[U32, S32, U64, S64, F32, F64]),
            () if form.take("min") => (Min, &[U32, S32, U64, S64]),
            () if form.take("max") => (Max, &[U32, S32, U64, S64]),
            () if form.take("and") => (And, &[B32, B64]),
            () if form.take("or") => (Or, &[B32, B64]),
            () if form.take("xor") => (Xor, &[B32, B64]),
            () if form.take("inc") => (Increment, &[U32]),
            () if form.take("dec") => (Decrement, &[U32]),
            () if form.take("exch") => (Exchange, &[B32, B64]),
            () if form.take("cas") => (CompareAndSwap, &[B32, B64]),
            () => return Err(form.unsupported()),
        };
        let returns = form.base() == "atom";
        let usable = matches!(space, Space::Global | Space::Shared | Space::Generic);
        let exchanges = matches!(operation, Exchange | CompareAndSwap);
        if !types.contains(&ty) || !usable || (exchanges && !returns) {
            return Err(form.unsupported());
        }
        let values = if operation == CompareAndSwap { 2 } else { 1 };
        form.operands(operands, usize::from(returns) + 1 + values)?;
        let to = if returns { Some(decoder.target(&operands[0], ty)?) } else { None };
        let operands = &operands[usize::from(returns)..];
        let address = decoder.address(&operands[0])?;
        let first = decoder.source(&operands[1], ty)?;
        let second = if values == 2 { decoder.source(&operands[2], ty)? } else { first };
        Ok(Atomic { operation, ty, space, address, to, from: [first, second] })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32, memories: &mut Memories) -> Result<(), Trouble> {
        let addresses = self.address.of(registers);
        let wide = self.ty.size() == 8;
        let mut near = None;
        for lane in memories.order(mask) {
            let [a, b] = self.from.map(|register| match wide {
                true => registers.wide[usize::from(register)][lane],
                false => registers.narrow[usize::from(register)][lane].into(),
            });
            let change = |old| self.change(old, a, b);
            let old = match wide {
                true => update::<8>(memories, self.space, addresses[lane], &mut near, change),
                false => update::<4>(memories, self.space, addresses[lane], &mut near, change),
            }
            .map_err(|mistake| Trouble { lane, mistake })?;
            match self.to {
                Some(to) if wide => registers.wide[usize::from(to)][lane] = old,
                Some(to) => registers.narrow[usize::from(to)][lane] = old as u32,
                None => {}
            }
        }
        Ok(())
    }

    fn change(&self, old: u64, a: u64, b: u64) -> u64 {
        let less = match self.ty {
            Type::S32 => (a as i32) < old as i32,
            Type::S64 => (a as i64) < old as i64,
            _ => a < old,
        };
        match self.operation {
            Operation::Add => match self.ty {
                Type::F32 => (f32::from_bits(old as u32) + f32::from_bits(a as u32)).to_bits().into(),
                Type::F64 => (f64::from_bits(old) + f64::from_bits(a)).to_bits(),
                _ => old.wrapping_add(a),
            },
            Operation::Min => {
                if less {
                    a
                } else {
                    old
                }
            }
            Operation::Max => {
                if less {
                    old
                } else {
                    a
                }
            }
            Operation::And => old & a,
            Operation::Or => old | a,
            Operation::Xor => old ^ a,
            Operation::Increment => {
                if old >= a {
                    0
                } else {
                    old + 1
                }
            }
            Operation::Decrement => {
                if old == 0 || old > a {
                    a
                } else {
                    old - 1
                }
            }
            Operation::Exchange => a,
            Operation::CompareAndSwap => {
                if old == a {
                    b
                } else {
                    old
                }
            }
        }
    }
}

fn update<'a, const SIZE: usize>(
    memories: &mut Memories<'a>,
    space: Space,
    address: u64,
    near: &mut Near<'a>,
    change: impl Fn(u64) -> u64,
) -> Result<u64, Mistake> {
    match resolve(space, address) {
        (Space::Shared, address) => memories.shared.update::<SIZE>(address, change),
        (Space::Local, address) => {
            let nearest = "atomics are for global and shared memory".to_owned();
            Err(Mistake::OutOfBounds { space: "local", access: "atomic", address, size: SIZE, nearest })
        }
        _ => {
            let (allocation, offset) = memories.allocation::<SIZE>("atomic", address, near)?;
            match allocation.is_written::<SIZE>(offset) {
                true => Ok(allocation.update::<SIZE>(offset, change)),
                false => Err(uninitialized(allocation, offset, SIZE)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::faults::Mistake;
    use crate::instructions::testing::{Kernel, refused};

    /// What is in memory after one thread's operation, and the old value.
    fn once(form: &str, memory: u32, operands: [u32; 2]) -> (u32, u32) {
        let values = if form.contains("cas") { "%r1, %r2" } else { "%r1" };
        let code = format!(
            "setp.eq.u32 %p0, %laneid, 0; @%p0 atom.global.{form} %r0, [%rd0], {values}; ld.global.u32 %r3, [%rd0];"
        );
        let found = Kernel::new(&code)
            .registers(&[0, operands[0], operands[1]], &[])
            .global(&memory.to_le_bytes())
            .run()
            .unwrap();
        (found.0[3], found.0[0])
    }

    #[test]
    fn each_operation_leaves_its_result_and_gives_the_old_value() {
        let minus = u32::MAX;
        assert_eq!(once("add.u32", 5, [7, 0]), (12, 5));
        assert_eq!(once("add.s32", 5, [minus, 0]), (4, 5));
        assert_eq!(once("add.f32", 1.5f32.to_bits(), [2f32.to_bits(), 0]), (3.5f32.to_bits(), 1.5f32.to_bits()));
        assert_eq!(once("min.u32", 5, [minus, 0]).0, 5);
        assert_eq!(once("min.s32", 5, [minus, 0]).0, minus);
        assert_eq!(once("max.u32", 5, [minus, 0]).0, minus);
        assert_eq!(once("max.s32", 5, [minus, 0]).0, 5);
        assert_eq!(once("and.b32", 0b110, [0b011, 0]).0, 0b010);
        assert_eq!(once("or.b32", 0b110, [0b011, 0]).0, 0b111);
        assert_eq!(once("xor.b32", 0b110, [0b011, 0]).0, 0b101);
        assert_eq!(once("exch.b32", 5, [7, 0]), (7, 5));
        assert_eq!(once("cas.b32", 5, [5, 9]), (9, 5));
        assert_eq!(once("cas.b32", 5, [6, 9]), (5, 5));
        assert_eq!([once("inc.u32", 5, [9, 0]).0, once("inc.u32", 9, [9, 0]).0], [6, 0]);
        assert_eq!(
            [once("dec.u32", 5, [9, 0]).0, once("dec.u32", 0, [9, 0]).0, once("dec.u32", 11, [9, 0]).0],
            [4, 9, 9]
        );
    }

    /// As `once`, with 64 bits.
    fn once_wide(form: &str, memory: u64, operands: [u64; 2]) -> (u64, u64) {
        let values = if form.contains("cas") { "%rd2, %rd3" } else { "%rd2" };
        let code = format!(
            "setp.eq.u32 %p0, %laneid, 0; @%p0 atom.global.{form} %rd1, [%rd0], {values}; ld.global.u64 %rd4, [%rd0];"
        );
        let kernel = Kernel::new(&code).registers(&[], &[0, 0, operands[0], operands[1]]);
        let found = kernel.global(&memory.to_le_bytes()).run().unwrap();
        (found.1[4], found.1[1])
    }

    #[test]
    fn each_operation_has_64_bits_too() {
        let (minus, high) = (u64::MAX, 1 << 40);
        assert_eq!(once_wide("add.u64", high, [7, 0]), (high + 7, high));
        assert_eq!(once_wide("add.s64", 5, [minus, 0]).0, 4);
        assert_eq!(once_wide("add.f64", 1.5f64.to_bits(), [2f64.to_bits(), 0]).0, 3.5f64.to_bits());
        assert_eq!(once_wide("min.u64", 5, [minus, 0]).0, 5);
        assert_eq!(once_wide("min.s64", 5, [minus, 0]).0, minus);
        assert_eq!(once_wide("max.u64", 5, [minus, 0]).0, minus);
        assert_eq!(once_wide("max.s64", 5, [minus, 0]).0, 5);
        assert_eq!(once_wide("and.b64", high + 1, [high, 0]).0, high);
        assert_eq!(once_wide("or.b64", 1, [high, 0]).0, high + 1);
        assert_eq!(once_wide("xor.b64", high + 1, [high, 0]).0, 1);
        assert_eq!(once_wide("exch.b64", high, [7, 0]), (7, high));
        assert_eq!(once_wide("cas.b64", high, [high, 9]), (9, high));
    }

    #[test]
    fn all_threads_of_a_warp_count() {
        let code = "red.global.add.u32 [%rd0], 2; atom.shared.add.u32 %r1, [4], 0;";
        let kernel = Kernel::new(&format!("st.shared.u32 [4], 3; {code} ld.global.u32 %r0, [%rd0];"));
        let found = kernel.shared(8).global(&1u32.to_le_bytes()).run().unwrap();
        assert_eq!(found.0[..2], [65, 3]);
        let found = Kernel::new("red.global.add.f64 [%rd0], 0d3FF0000000000000; ld.global.u64 %rd1, [%rd0];")
            .global(&[0; 8])
            .run()
            .unwrap();
        assert_eq!(f64::from_bits(found.1[1]), 32.0);
        let found =
            Kernel::new("atom.add.u64 %rd1, [%rd0], 1; ld.global.u64 %rd2, [%rd0];").global(&[0; 8]).run().unwrap();
        assert_eq!(found.1[1..3], [0, 32]);
    }

    #[test]
    fn mistakes_are_those_of_loads() {
        let run = |code: &str| Kernel::new(code).global(&[0; 6]).unwritten(0..1).run();
        assert!(matches!(run("red.global.add.u32 [%rd0], 1;"), Err(Mistake::Uninitialized { .. })));
        assert!(matches!(run("red.global.add.u32 [%rd0+2], 1;"), Err(Mistake::Misaligned { .. })));
        assert!(matches!(run("red.global.add.u32 [%rd0+4], 1;"), Err(Mistake::OutOfBounds { access: "atomic", .. })));
        refused("red.global.exch.b32 [%rd0], %r1;");
        refused("atom.global.min.f32 %f0, [%rd0], %f1;");
        refused("atom.param.add.u32 %r0, [0], %r1;");
    }
}
