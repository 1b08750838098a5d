//! The instructions: a family a file, each with how it is decoded, what it does, and tests of every form against reference values.

mod approximate;
mod atomic;
mod bits;
mod compare;
mod convert;
mod float;
#[cfg(test)]
mod forms;
mod half;
mod integer;
mod memory;
mod moves;
mod reach;
mod rounding;
#[cfg(test)]
pub mod testing;
mod warp;

pub use atomic::Atomic;
pub use compare::read as read_predicate;
pub use memory::{Load, Store};
pub use reach::{Memories, Trouble};
pub use warp::{Collective, Collectively};

use crate::machine::Registers;
use crate::program::{Decoder, Form, Guard};
use crate::ptx::{Error, Operand};

/// An instruction.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// For which threads it runs.
    pub guard: Guard,
    /// What it does.
    pub operation: Operation,
}

/// What an instruction does.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Works on registers alone.
    Compute(Compute),
    /// Reads memory.
    Load(Load),
    /// Writes memory.
    Store(Store),
    /// Reads and writes memory at once.
    Atomic(Atomic),
    /// Threads of a warp work together.
    Collective(Collective),
    /// Goes on at another instruction.
    Branch(u32),
    /// Waits for all threads of the block.
    Barrier,
    /// Ends the thread.
    Exit,
    /// Ends the kernel with an error.
    Trap,
    /// Does nothing that can be seen here: fences, prefetches.
    Nothing,
}

/// Instructions that work on registers alone.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Compute {
    Integer(integer::Integer),
    Float(float::Float),
    Approximate(approximate::Approximate),
    Bits(bits::Bits),
    Compare(compare::Compare),
    Select(compare::Select),
    Logic(compare::Logic),
    Convert(convert::Convert),
    Move(moves::Move),
}

impl Compute {
    /// Runs it for the threads in `mask`.
    #[inline]
    pub fn execute(&self, registers: &mut Registers, mask: u32) {
        match self {
            Compute::Integer(instruction) => instruction.execute(registers, mask),
            Compute::Float(instruction) => instruction.execute(registers, mask),
            Compute::Approximate(instruction) => instruction.execute(registers, mask),
            Compute::Bits(instruction) => instruction.execute(registers, mask),
            Compute::Compare(instruction) => instruction.execute(registers, mask),
            Compute::Select(instruction) => instruction.execute(registers, mask),
            Compute::Logic(instruction) => instruction.execute(registers, mask),
            Compute::Convert(instruction) => instruction.execute(registers, mask),
            Compute::Move(instruction) => instruction.execute(registers, mask),
        }
    }
}

impl Instruction {
    /// Decodes an instruction; `form` keeps the modifiers that nobody took.
    pub fn decode(
        form: &mut Form,
        guard: Guard,
        operands: &[Operand],
        decoder: &mut Decoder,
    ) -> Result<Instruction, Error> {
        Ok(Instruction { guard, operation: Operation::decode(form, operands, decoder)? })
    }

    /// The end of a thread.
    pub fn exit() -> Instruction {
        Instruction { guard: None, operation: Operation::Exit }
    }
}

impl Operation {
    fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Operation, Error> {
        Ok(match form.base() {
            "ld" | "ldu" => Operation::Load(Load::decode(form, operands, decoder)?),
            "st" => Operation::Store(Store::decode(form, operands, decoder)?),
            "atom" | "red" => Operation::Atomic(Atomic::decode(form, operands, decoder)?),
            "shfl" | "vote" | "activemask" => Operation::Collective(Collective::decode(form, operands, decoder)?),
            "bar" | "barrier" => {
                form.take_all(&["cta", "aligned"]);
                if form.take("warp") {
                    return Ok(Operation::Collective(Collective::decode(form, operands, decoder)?));
                }
                if !form.take("sync") || operands != [Operand::Integer(0)] {
                    return Err(decoder.error("of the barriers of a block, `bar.sync 0` is supported"));
                }
                Operation::Barrier
            }
            "bra" => {
                form.take("uni");
                form.operands(operands, 1)?;
                Operation::Branch(decoder.label(&operands[0])?)
            }
            "ret" | "exit" => {
                form.take("uni");
                form.operands(operands, 0)?;
                Operation::Exit
            }
            "trap" => Operation::Trap,
            "membar" | "fence" => {
                form.take_all(&["cta", "gl", "sys", "gpu", "sc", "acq_rel"]);
                Operation::Nothing
            }
            "call" => return Err(decoder.error("calls are not supported: let the compiler inline functions")),
            _ => Operation::Compute(Compute::decode(form, operands, decoder)?),
        })
    }
}

impl Compute {
    fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Compute, Error> {
        use Compute::*;
        Ok(match form.base() {
            "setp" => Compare(compare::Compare::decode(form, operands, decoder)?),
            "selp" => Select(compare::Select::decode(form, operands, decoder)?),
            "and" | "or" | "xor" | "not" | "mov" if form.is_predicate() => {
                Logic(compare::Logic::decode(form, operands, decoder)?)
            }
            "mov" | "cvta" => Move(moves::Move::decode(form, operands, decoder)?),
            "cvt" => Convert(convert::Convert::decode(form, operands, decoder)?),
            "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "brev" | "clz" | "popc"
            | "bfind" | "prmt" | "lop3" => Bits(bits::Bits::decode(form, operands, decoder)?),
            "ex2" | "lg2" | "sin" | "cos" | "tanh" | "rsqrt" => {
                Approximate(approximate::Approximate::decode(form, operands, decoder)?)
            }
            "div" | "rcp" | "sqrt" if form.has("approx") || form.has("full") => {
                Approximate(approximate::Approximate::decode(form, operands, decoder)?)
            }
            "fma" | "rcp" | "sqrt" | "copysign" => Float(float::Float::decode(form, operands, decoder)?),
            "add" | "sub" | "mul" | "mad" | "div" | "min" | "max" | "neg" | "abs" if form.is_float() => {
                Float(float::Float::decode(form, operands, decoder)?)
            }
            _ => Integer(integer::Integer::decode(form, operands, decoder)?),
        })
    }
}
