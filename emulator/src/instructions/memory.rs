//! Loads and stores.

use super::reach::{Memories, Trouble};
use crate::faults::Mistake;
use crate::machine::{ALL, Lanes, Register, Registers, Value, WARP, lanes, map};
use crate::memory::Allocation;
use crate::program::{Address, Base, Decoder, Form};
use crate::ptx::{Error, Operand, Space, Type};

/// A load of one value or of a vector.
#[derive(Debug, Clone)]
pub struct Load {
    access: Access,
    signed: bool,
}

/// A store of one value or of a vector.
#[derive(Debug, Clone)]
pub struct Store {
    access: Access,
}

/// What loads and stores have in common.
#[derive(Debug, Clone)]
struct Access {
    space: Space,
    address: Address,
    /// The bytes of an element.
    size: usize,
    /// The elements.
    count: usize,
    /// The registers, and whether each has 64 bits.
    registers: [(Register, bool); 4],
}

impl Load {
    /// `ld`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Load, Error> {
        form.operands(operands, 2)?;
        form.take("nc");
        let (ty, access) = Access::decode(form, &operands[1], &operands[0], decoder, Decoder::target_at_least)?;
        Ok(Load { access, signed: ty.is_signed() })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &mut Registers, mask: u32, memories: &mut Memories) -> Result<(), Trouble> {
        match self.access.size {
            1 => self.run::<1>(registers, mask, memories),
            2 => self.run::<2>(registers, mask, memories),
            4 => self.run::<4>(registers, mask, memories),
            _ => self.run::<8>(registers, mask, memories),
        }
    }

    fn run<const SIZE: usize>(
        &self,
        registers: &mut Registers,
        mask: u32,
        memories: &mut Memories,
    ) -> Result<(), Trouble> {
        let Access { space, count, .. } = self.access;
        let addresses = self.access.address.of(registers);
        let done = match space {
            Space::Global => self.of_global::<SIZE>(registers, mask, &addresses, memories),
            Space::Shared => self.of_shared::<SIZE>(registers, mask, &addresses, memories),
            _ => false,
        };
        if done {
            return Ok(());
        }
        let mut near = None;
        for lane in memories.order(mask) {
            let address = addresses[lane];
            self.access.check_vector(address, "load").map_err(|mistake| Trouble { lane, mistake })?;
            for part in 0..count {
                let value = memories
                    .load::<SIZE>(space, lane, address.wrapping_add((part * SIZE) as u64), &mut near)
                    .map_err(|mistake| Trouble { lane, mistake })?;
                let value = if self.signed { sign_extended::<SIZE>(value) } else { value };
                match self.access.registers[part] {
                    (register, true) => registers.wide[usize::from(register)][lane] = value,
                    (register, false) => registers.narrow[usize::from(register)][lane] = value as u32,
                }
            }
        }
        Ok(())
    }

    /// Loads for all threads at once, if all are right and in one allocation.
    #[inline(always)]
    fn of_global<const SIZE: usize>(
        &self,
        registers: &mut Registers,
        mask: u32,
        addresses: &Lanes<u64>,
        memories: &Memories,
    ) -> bool {
        let Some(allocation) = self.access.together(addresses, mask, memories) else { return false };
        for part in 0..self.access.count {
            let mut row = [0; WARP];
            for lane in lanes(mask) {
                let offset = (addresses[lane] - allocation.address()) as usize + part * SIZE;
                if !allocation.is_written::<SIZE>(offset) {
                    return false;
                }
                row[lane] = allocation.load::<SIZE>(offset);
            }
            self.write::<SIZE>(registers, part, &row, mask);
        }
        true
    }

    /// Loads for all threads at once, if all are right.
    #[inline(always)]
    fn of_shared<const SIZE: usize>(
        &self,
        registers: &mut Registers,
        mask: u32,
        addresses: &Lanes<u64>,
        memories: &mut Memories,
    ) -> bool {
        let size = (SIZE * self.access.count) as u64;
        if !lanes(mask).all(|lane| aligned(addresses[lane], size)) {
            return false;
        }
        let visitor = memories.visitor(0);
        for part in 0..self.access.count {
            let mut row = [0; WARP];
            let addresses = map(addresses, |address| address.wrapping_add((part * SIZE) as u64));
            if !memories.shared.load_row::<SIZE>(visitor, mask, &addresses, &mut row) {
                return false;
            }
            self.write::<SIZE>(registers, part, &row, mask);
        }
        true
    }

    #[inline(always)]
    fn write<const SIZE: usize>(&self, registers: &mut Registers, part: usize, row: &Lanes<u64>, mask: u32) {
        let extend = |value| if self.signed { sign_extended::<SIZE>(value) } else { value };
        match self.access.registers[part] {
            (register, true) => u64::write(registers, register, &map(row, extend), mask),
            (register, false) => u32::write(registers, register, &map(row, |value| extend(value) as u32), mask),
        }
    }
}

impl Store {
    /// `st`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Store, Error> {
        form.operands(operands, 2)?;
        let (_, access) = Access::decode(form, &operands[0], &operands[1], decoder, Decoder::source_at_least)?;
        if matches!(access.space, Space::Parameter | Space::Constant) {
            return Err(form.unsupported());
        }
        Ok(Store { access })
    }

    /// Runs it for the threads in `mask`.
    pub fn execute(&self, registers: &Registers, mask: u32, memories: &mut Memories) -> Result<(), Trouble> {
        match self.access.size {
            1 => self.run::<1>(registers, mask, memories),
            2 => self.run::<2>(registers, mask, memories),
            4 => self.run::<4>(registers, mask, memories),
            _ => self.run::<8>(registers, mask, memories),
        }
    }

    fn run<const SIZE: usize>(&self, registers: &Registers, mask: u32, memories: &mut Memories) -> Result<(), Trouble> {
        let Access { space, count, .. } = self.access;
        let addresses = self.access.address.of(registers);
        if space == Space::Global
            && let Some(allocation) = self.access.together(&addresses, mask, memories)
        {
            for (part, (register, wide)) in self.access.registers[..count].iter().enumerate() {
                for lane in memories.order(mask) {
                    let value = match wide {
                        true => registers.wide[usize::from(*register)][lane],
                        false => registers.narrow[usize::from(*register)][lane].into(),
                    };
                    let offset = (addresses[lane] - allocation.address()) as usize + part * SIZE;
                    allocation.store::<SIZE>(offset, value);
                }
            }
            return Ok(());
        }
        let mut near = None;
        for lane in memories.order(mask) {
            let address = addresses[lane];
            self.access.check_vector(address, "store").map_err(|mistake| Trouble { lane, mistake })?;
            for part in 0..count {
                let value = match self.access.registers[part] {
                    (register, true) => registers.wide[usize::from(register)][lane],
                    (register, false) => registers.narrow[usize::from(register)][lane].into(),
                };
                memories
                    .store::<SIZE>(space, lane, address.wrapping_add((part * SIZE) as u64), value, &mut near)
                    .map_err(|mistake| Trouble { lane, mistake })?;
            }
        }
        Ok(())
    }
}

/// How the register of a value is found: as a target, or as a source.
type Resolve = fn(&mut Decoder, &Operand, Type) -> Result<(Register, bool), Error>;

impl Access {
    fn decode(
        form: &mut Form,
        address: &Operand,
        value: &Operand,
        decoder: &mut Decoder,
        register: Resolve,
    ) -> Result<(Type, Access), Error> {
        form.take_all(&["weak", "volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys"]);
        form.take_all(&["ca", "cg", "cs", "lu", "cv", "wb", "wt"]);
        let space = Space::decode(form);
        let count = match () {
            () if form.take("v2") => 2,
            () if form.take("v4") => 4,
            () => 1,
        };
        let ty = form.ty()?;
        let size = ty.size();
        if ty == Type::Predicate || count * size > 16 {
            return Err(form.unsupported());
        }
        let parts = match value {
            Operand::Vector(parts) if parts.len() == count && count > 1 => parts.as_slice(),
            value if count == 1 => std::slice::from_ref(value),
            _ => return Err(decoder.error(format!("a vector of {count} registers is needed"))),
        };
        // A half is only moved here, so that its register may have any type of its size or more.
        let ty = if ty == Type::F16 { Type::B16 } else { ty };
        let mut registers = [(0, false); 4];
        for (place, part) in parts.iter().enumerate() {
            registers[place] = register(decoder, part, ty)?;
        }
        Ok((ty, Access { space, address: decoder.address(address)?, size, count, registers }))
    }

    /// The allocation that all threads of the warp access, each inside and aligned; most often there is one. None where each access is
    /// to be looked at by itself.
    #[inline(always)]
    fn together<'a>(&self, addresses: &Lanes<u64>, mask: u32, memories: &Memories<'a>) -> Option<&'a Allocation> {
        if memories.caller.is_some() {
            return None;
        }
        let size = (self.size * self.count) as u64;
        let (allocation, _) = memories.global.find(addresses[mask.trailing_zeros() as usize], size as usize)?;
        let (start, last) = (allocation.address(), (allocation.size() as u64).checked_sub(size)?);
        let inside = |address: u64| address.wrapping_sub(start) <= last && aligned(address, size);
        match mask {
            ALL => addresses.iter().fold(true, |all, address| all & inside(*address)),
            _ => lanes(mask).all(|lane| inside(addresses[lane])),
        }
        .then_some(allocation)
    }

    /// A vector is aligned as a whole.
    #[inline(always)]
    fn check_vector(&self, address: u64, access: &'static str) -> Result<(), Mistake> {
        let size = self.size * self.count;
        if self.count > 1 && !aligned(address, size as u64) {
            return Err(Mistake::Misaligned { space: self.space.name(), access, address, size });
        }
        Ok(())
    }
}

impl Space {
    fn name(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Constant => "constant",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Parameter => "parameter",
            Space::Generic => "generic",
        }
    }

    /// The space that a form names.
    pub fn decode(form: &mut Form) -> Space {
        match () {
            () if form.take("global") => Space::Global,
            () if form.take("shared") => Space::Shared,
            () if form.take("local") => Space::Local,
            () if form.take("param") => Space::Parameter,
            () if form.take("const") => Space::Constant,
            () => Space::Generic,
        }
    }
}

impl Address {
    /// The address of each thread.
    #[inline(always)]
    pub fn of(&self, registers: &Registers) -> Lanes<u64> {
        match self.base {
            Base::None => [self.offset; WARP],
            Base::Wide(register) => map(&registers.wide[usize::from(register)], |base| base.wrapping_add(self.offset)),
            Base::Narrow(register) => {
                map(&registers.narrow[usize::from(register)], |base| base.wrapping_add(self.offset as u32).into())
            }
        }
    }
}

/// Whether an address is a multiple of a power of two, without a division.
#[inline(always)]
fn aligned(address: u64, size: u64) -> bool {
    address & (size - 1) == 0
}

fn sign_extended<const SIZE: usize>(value: u64) -> u64 {
    let unused = 64 - 8 * SIZE;
    ((value << unused) as i64 >> unused) as u64
}

#[cfg(test)]
mod tests {
    use crate::faults::Mistake;
    use crate::instructions::testing::{Kernel, refused};

    #[test]
    fn loads_extend_by_their_type() {
        let kernel = Kernel::new(
            "ld.global.u8 %r0, [%rd0]; ld.global.s8 %r1, [%rd0]; ld.global.u16 %r2, [%rd0]; ld.global.s16 %r3, [%rd0];",
        );
        let found = kernel.global(&[0xfe, 0xff, 1, 2]).run().unwrap();
        assert_eq!(found.0[..4], [0xfe, 0xffff_fffe, 0xfffe, 0xffff_fffe]);
        let kernel =
            Kernel::new("ld.global.s8 %rd1, [%rd0]; ld.global.u32 %rd2, [%rd0]; ld.global.u64 %rd3, [%rd0+0];");
        let found = kernel.global(&[0xfe, 0xff, 1, 2, 3, 4, 5, 6]).run().unwrap();
        assert_eq!(found.1[1..4], [-2i64 as u64, 0x0201_fffe, 0x0605_0403_0201_fffe]);
    }

    #[test]
    fn vectors_and_offsets() {
        let kernel = Kernel::new(
            "ld.global.nc.v2.f32 {%f0, %f1}, [%rd0+8]; st.global.v2.u32 [%rd0], {%r1, %r0}; ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd0];",
        );
        let bytes: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(kernel.global(&bytes).run().unwrap().0[..6], [3, 4, 4, 3, 3, 4]);
    }

    #[test]
    fn stores_cut_their_values() {
        let kernel = Kernel::new(
            "st.global.u8 [%rd0], %r1; st.global.u16 [%rd0+2], %r1; st.global.u8 [%rd0+1], %rd1; ld.global.u32 %r0, [%rd0];",
        );
        let found = kernel.registers(&[0, 0xabcd_1234], &[0, 0x99]).global(&[0; 4]).run().unwrap();
        assert_eq!(found.0[0], 0x1234_9934);
    }

    #[test]
    fn doubles_vectors_of_bytes_and_modifiers_of_caches() {
        let bytes: Vec<u8> = 2.5f64.to_le_bytes().into_iter().chain([1, 2, 3, 4, 5, 6, 7, 8]).collect();
        let code = "ld.global.f64 %fd1, [%rd0]; ld.global.v4.u8 {%r0, %r1, %r2, %r3}, [%rd0+8]; ld.global.v2.u16 {%r4, %r5}, [%rd0+12]; ld.volatile.global.u32 %r6, [%rd0+8]; ld.global.ca.b16 %r7, [%rd0+8];";
        let found = Kernel::new(code).global(&bytes).run().unwrap();
        assert_eq!(
            (found.1[1], &found.0[..8]),
            (2.5f64.to_bits(), &[1, 2, 3, 4, 0x0605, 0x0807, 0x0403_0201, 0x0201][..])
        );
        let code = "st.global.v2.f64 [%rd0], {%fd1, %fd2}; st.volatile.global.u8 [%rd0], 9; ld.global.v2.u64 {%rd3, %rd4}, [%rd0];";
        let found = Kernel::new(code).registers(&[], &[0, 0x1122, 0x3344]).global(&bytes).run().unwrap();
        assert_eq!(found.1[3..5], [0x1109, 0x3344]);
    }

    #[test]
    fn each_thread_has_its_own_address() {
        let kernel = Kernel::new("mul.wide.u32 %rd1, %laneid, 4; add.s64 %rd1, %rd1, %rd0; ld.global.u32 %r0, [%rd1];");
        let bytes: Vec<u8> = (100..132u32).flat_map(u32::to_le_bytes).collect();
        let rows = kernel.global(&bytes).run().unwrap().2;
        assert_eq!((rows[0][0], rows[0][31]), (100, 131));
    }

    #[test]
    fn accesses_outside_are_reported_to_the_byte() {
        let run = |code: &str| Kernel::new(code).global(&[0; 6]).run();
        assert!(run("ld.global.u16 %r0, [%rd0+4];").is_ok());
        assert!(matches!(run("ld.global.u32 %r0, [%rd0+4];"), Err(Mistake::OutOfBounds { size: 4, .. })));
        assert!(matches!(run("st.global.u8 [%rd0+6], %r0;"), Err(Mistake::OutOfBounds { access: "store", .. })));
        assert!(matches!(run("ld.global.u8 %r0, [%rd0+-1];"), Err(Mistake::OutOfBounds { .. })));
        assert!(matches!(run("ld.global.u8 %r0, [0];"), Err(Mistake::OutOfBounds { .. })));
        assert!(matches!(run("ld.param.u32 %r0, [64];"), Err(Mistake::OutOfBounds { space: "parameter", .. })));
    }

    #[test]
    fn misaligned_accesses_are_reported() {
        let run = |code: &str| Kernel::new(code).global(&[0; 64]).run();
        assert!(matches!(run("ld.global.u32 %r0, [%rd0+2];"), Err(Mistake::Misaligned { size: 4, .. })));
        assert!(matches!(
            run("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%rd0+8];"),
            Err(Mistake::Misaligned { size: 16, .. })
        ));
        assert!(matches!(run("st.global.u64 [%rd0+4], %rd0;"), Err(Mistake::Misaligned { access: "store", .. })));
    }

    #[test]
    fn vectors_in_shared_memory_are_aligned_as_a_whole() {
        let run = |at: u32| {
            let fill = "st.shared.v4.u32 [0], {%r1, %r1, %r1, %r1}; st.shared.v4.u32 [16], {%r1, %r1, %r1, %r1}; bar.warp.sync -1;";
            Kernel::new(&format!("{fill} ld.shared.v4.u32 {{%r2, %r3, %r4, %r5}}, [{at}];")).shared(32).run()
        };
        assert!(run(16).is_ok());
        assert!(matches!(run(8), Err(Mistake::Misaligned { space: "shared", size: 16, .. })));
        let store = Kernel::new("st.shared.v2.u32 [4], {%r1, %r1};").shared(32).run();
        assert!(matches!(store, Err(Mistake::Misaligned { space: "shared", access: "store", size: 8, .. })));
    }

    #[test]
    fn reads_of_what_was_never_written_are_reported() {
        let kernel = |code: &str| Kernel::new(code).global(&[0; 8]).unwritten(5..6).run();
        assert!(kernel("ld.global.u32 %r0, [%rd0];").is_ok());
        assert!(matches!(kernel("ld.global.u32 %r0, [%rd0+4];"), Err(Mistake::Uninitialized { .. })));
        assert!(kernel("st.global.u8 [%rd0+5], %r0; ld.global.u32 %r0, [%rd0+4];").is_ok());
    }

    #[test]
    fn shared_and_local_memory_by_their_own_and_by_generic_addresses() {
        let shared = "st.shared.u32 [%r1], 7; bar.warp.sync -1; cvta.shared.u64 %rd1, 8; ld.u32 %r0, [%rd1]; st.u32 [%rd1+4], %r0; bar.warp.sync -1; ld.shared.u32 %r2, [12];";
        let found = Kernel::new(shared).registers(&[0, 8], &[]).shared(16).run().unwrap();
        assert_eq!((found.0[0], found.0[2]), (7, 7));
        let local =
            "st.local.u32 [depot+4], %laneid; mov.u64 %rd1, depot; cvta.local.u64 %rd1, %rd1; ld.u32 %r0, [%rd1+4];";
        let rows = Kernel::new(&format!(".local .align 4 .b8 depot[8]; {local}")).run().unwrap().2;
        assert_eq!((rows[0][0], rows[0][31]), (0, 31));
        let outside = Kernel::new("st.shared.u32 [16], 7;").shared(16).run();
        assert!(matches!(outside, Err(Mistake::OutOfBounds { space: "shared", .. })));
    }

    #[test]
    fn forms_that_ptx_does_not_have_are_refused() {
        refused("ld.global.v4.u64 {%rd0, %rd1, %rd2, %rd3}, [%rd4];");
        refused("ld.global.v2.u32 {%r0, %r1, %r2}, [%rd4];");
        refused("ld.global.u64 %r0, [%rd4];");
        refused("ld.global.u32 %r0, %rd4;");
        refused("st.param.u32 [0], %r1;");
        refused("ld.texture.u32 %r0, [%rd4];");
    }
}
