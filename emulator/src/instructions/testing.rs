//! Runs a few instructions in one warp, for the tests of the instructions. `%f` and `%fd` are other names of `%r` and `%rd`.

use std::collections::HashMap;
use std::ops::Range;

use crate::faults::Mistake;
use crate::machine::{Block, Launch};
use crate::memory::Global;
use crate::program::Program;
use crate::ptx;

/// The registers after a run: the narrow and the wide ones of the first thread, and the narrow ones of all threads.
pub type Found = (Vec<u32>, Vec<u64>, Vec<[u32; 32]>);

/// A few instructions with what they find.
pub struct Kernel {
    code: String,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    global: Vec<u8>,
    unwritten: Range<usize>,
    shared: u32,
    parameters: Vec<u8>,
}

impl Kernel {
    /// Instructions that find nothing.
    pub fn new(code: &str) -> Kernel {
        let code = code.replace("%fd", "%rd").replace("%f", "%r");
        Kernel {
            code,
            narrow: Vec::new(),
            wide: Vec::new(),
            global: Vec::new(),
            unwritten: 0..0,
            shared: 0,
            parameters: Vec::new(),
        }
    }

    /// What the registers hold, from the first on.
    pub fn registers(mut self, narrow: &[u32], wide: &[u64]) -> Kernel {
        (self.narrow, self.wide) = (narrow.to_vec(), wide.to_vec());
        self
    }

    /// Bytes in global memory, whose address `%rd0` holds.
    pub fn global(mut self, bytes: &[u8]) -> Kernel {
        self.global = bytes.to_vec();
        self
    }

    /// Those of the bytes that were never written.
    pub fn unwritten(mut self, bytes: Range<usize>) -> Kernel {
        self.unwritten = bytes;
        self
    }

    /// Bytes of shared memory.
    pub fn shared(mut self, bytes: u32) -> Kernel {
        self.shared = bytes;
        self
    }

    /// The bytes of the parameters, which begin at `[0]`.
    pub fn parameters(mut self, bytes: &[u8]) -> Kernel {
        self.parameters = bytes.to_vec();
        self
    }

    fn program(&self) -> Result<Program, ptx::Error> {
        let source = format!(
            ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry test()\n{{\n.reg .b32 %r<8>; .reg .b64 %rd<8>; \
             .reg .pred %p<4>;\n{}\nret;\n}}",
            self.code
        );
        let module = ptx::parse(&source)?;
        Program::decode(&module, &module.entries[0], &HashMap::new())
    }

    /// Runs them.
    pub fn run(self) -> Result<Found, Mistake> {
        Ok(self.predicates()?.0)
    }

    fn predicates(mut self) -> Result<(Found, Vec<u32>), Mistake> {
        let program = self.program().unwrap_or_else(|error| panic!("{error}: {}", self.code));
        let mut global = Global::new(1 << 20);
        if !self.global.is_empty() {
            let address = global.allocate(self.global.len(), false).unwrap();
            let (memory, _) = global.find_mut(address, 1).unwrap();
            memory.write(0, &self.global);
            memory.mark(self.unwritten.start, self.unwritten.len(), false);
            if self.wide.is_empty() {
                self.wide.push(0);
            }
            self.wide[0] = address;
        }
        let launch = Launch {
            program: &program,
            grid: [1; 3],
            block: [32, 1, 1],
            parameters: self.parameters.clone(),
            shared_bytes: self.shared,
            global: &global,
            reversed: false,
            races: None,
            limit: 1 << 20,
        };
        let mut block = Block::new(&launch);
        let registers = &mut block.warps[0].registers;
        self.narrow.iter().enumerate().for_each(|(row, value)| registers.narrow[row] = [*value; 32]);
        self.wide.iter().enumerate().for_each(|(row, value)| registers.wide[row] = [*value; 32]);
        block.run(0).map_err(|fault| fault.mistake)?;
        let registers = &block.warps[0].registers;
        let narrow = registers.narrow.iter().map(|row| row[0]).collect();
        let wide = registers.wide.iter().map(|row| row[0]).collect();
        Ok(((narrow, wide, registers.narrow.clone()), registers.predicates.clone()))
    }
}

/// Runs code on registers.
pub fn run(code: &str, narrow: &[u32], wide: &[u64]) -> Found {
    Kernel::new(code).registers(narrow, wide).run().unwrap_or_else(|mistake| panic!("{mistake}: {code}"))
}

/// Whether code leaves `%p0` true.
pub fn holds(code: &str, narrow: &[u32], wide: &[u64]) -> bool {
    let (_, predicates) = Kernel::new(code).registers(narrow, wide).predicates().unwrap();
    predicates[0] & 1 == 1
}

/// The result of a form on registers of 32 bits.
pub fn narrow(form: &str, from: &[u32]) -> u32 {
    let names: String = (1..=from.len()).map(|number| format!(", %r{number}")).collect();
    let registers: Vec<u32> = std::iter::once(&0).chain(from).copied().collect();
    run(&format!("{form} %r0{names};"), &registers, &[]).0[0]
}

/// The result of a form on registers of 64 bits.
pub fn wide(form: &str, from: &[u64]) -> u64 {
    let names: String = (1..=from.len()).map(|number| format!(", %rd{number}")).collect();
    let registers: Vec<u64> = std::iter::once(&0).chain(from).copied().collect();
    run(&format!("{form} %rd0{names};"), &[], &registers).1[0]
}

/// The result of a form on `f32`.
pub fn single(form: &str, from: &[f32]) -> f32 {
    f32::from_bits(narrow(form, &from.iter().map(|value| value.to_bits()).collect::<Vec<_>>()))
}

/// The result of a form on `f64`.
pub fn double(form: &str, from: &[f64]) -> f64 {
    f64::from_bits(wide(form, &from.iter().map(|value| value.to_bits()).collect::<Vec<_>>()))
}

/// The code can't be loaded, and the error names its line.
pub fn refused(code: &str) {
    let error = Kernel::new(code).program().expect_err(code);
    assert_eq!(error.line, 7, "{error}");
}
