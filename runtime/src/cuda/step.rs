//! What the launches of a step see of it: types, numbers, and the addresses of its operands.

use std::ops::Range;

use cudarc::driver::result;
use plimsoll_plan::schedule::{Access, Operand, Role, StepKind};
use plimsoll_plan::shape::ValueType;

use super::Cuda;
use super::arena::CudaArena;
use super::kernels::{Argument, Grid, Pointer};
use super::product::Product;
use crate::device::Arguments;
use crate::error::Error;
use crate::program::{Instruction, Program};

/// A step of a program.
pub struct Step<'a> {
    cuda: &'a Cuda,
    program: &'a Program,
    index: usize,
    instruction: &'a Instruction,
    arguments: &'a Arguments,
    base: u64,
}

impl<'a> Step<'a> {
    /// The step at `index`, in an arena.
    pub fn new(
        cuda: &'a Cuda,
        program: &'a Program,
        index: usize,
        arena: &'a CudaArena,
        arguments: &'a Arguments,
    ) -> Step<'a> {
        Step { cuda, program, index, instruction: &program.instructions[index], arguments, base: arena.base() }
    }

    /// What the step does.
    pub fn kind(&self) -> StepKind {
        self.instruction.kind
    }

    /// The whole program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// What changes from run to run.
    pub fn arguments(&self) -> &'a Arguments {
        self.arguments
    }

    /// Whether this is a step of training.
    pub fn is_training(&self) -> bool {
        self.program.training
    }

    /// Samples in this batch.
    pub fn batch(&self) -> u32 {
        self.arguments.batch as u32
    }

    /// The types of the inputs.
    pub fn inputs(&self) -> &'a [ValueType] {
        &self.instruction.inputs
    }

    /// The types of the operands that are inputs. There are more than [`inputs`](Step::inputs) where one of these is never
    /// made.
    pub fn parts(&self) -> &'a [ValueType] {
        &self.instruction.parts
    }

    /// The only input as it lies: whole, or in parts, one after the other, each with its number and its channels.
    pub fn channels_of_parts(&self) -> impl Iterator<Item = (u32, Range<u32>)> + use<'a> {
        let mut end = 0;
        self.parts().iter().zip(0..).map(move |(part, number)| {
            let first = end;
            end += part.shape.0[0] as u32;
            (number, first..end)
        })
    }

    /// The type of the output.
    pub fn output(&self) -> &'a ValueType {
        &self.instruction.output
    }

    /// Whether the step has an operand in that role: a gradient that is not wanted is not there.
    pub fn has(&self, role: Role) -> bool {
        self.instruction.operand(role).is_some()
    }

    /// Whether the gradient of any input is wanted, or of a part of one.
    pub fn has_any_input_gradient(&self) -> bool {
        self.instruction.operands.iter().any(|operand| matches!(operand.role, Role::InputGradient(_)))
    }

    /// Whether two roles lie in one buffer.
    pub fn in_place(&self, from: Role, to: Role) -> bool {
        self.operand(from).buffer == self.operand(to).buffer
    }

    /// 1 if the step adds to what is there rather than overwriting it, as kernels are told; 0 if the operand is not there.
    pub fn adds(&self, role: Role) -> i32 {
        self.instruction.operand(role).is_some_and(|operand| operand.access == Access::Update).into()
    }

    /// The address of an operand, [`Pointer::NONE`] if the step does not have it.
    pub fn at(&self, role: Role) -> Pointer {
        let place = |operand: Operand| Pointer(self.base + self.program.region(operand.buffer).offset);
        self.instruction.operand(role).map_or(Pointer::NONE, place)
    }

    /// The bytes of an operand.
    pub fn bytes(&self, role: Role) -> usize {
        self.program.region(self.operand(role).buffer).bytes(self.arguments.batch)
    }

    /// The floats of an operand. `prepare` has checked that they are less than 2^31.
    pub fn count(&self, role: Role) -> u32 {
        (self.bytes(role) / 4) as u32
    }

    /// What the arena has to spare while the step runs: an address and bytes, none where there are none.
    fn spare(&self) -> (Pointer, usize) {
        /// cuBLAS asks for no more on any card: 32 MiB on Hopper, 4 MiB on others.
        const MOST: u64 = 32 << 20;
        let spare = &self.instruction.spare;
        let at = if spare.is_empty() { Pointer::NONE } else { Pointer(self.base + spare.start) };
        (at, (spare.end - spare.start).min(MOST) as usize)
    }

    fn operand(&self, role: Role) -> Operand {
        match self.instruction.operand(role) {
            Some(operand) => operand,
            None => panic!("{:?} has no operand {role:?}", self.instruction.kind),
        }
    }

    /// Starts a kernel.
    pub fn launch(&self, kernel: &str, grid: Grid, arguments: &[&dyn Argument]) -> Result<(), Error> {
        self.cuda.kernels.launch(kernel, grid, arguments, || self.describe())
    }

    /// Fills an operand with zeros.
    pub fn clear(&self, role: Role) -> Result<(), Error> {
        // SAFETY: the operand has these bytes in the arena.
        let cleared = unsafe { result::memset_d8_async(self.at(role).0, 0, self.bytes(role), self.cuda.card.stream()) };
        cleared.map_err(|error| self.cuda.card.error(&format!("{}: clearing memory", self.describe()), error))
    }

    /// A product of matrices: by cuBLAS where it is there.
    pub fn product(&self, product: &Product) -> Result<(), Error> {
        if let Some(blas) = &self.cuda.blas
            && blas.product(product, self.spare(), || format!("{}: {}", self.cuda.card.name(), self.describe()))?
        {
            return Ok(());
        }
        product.launch(self)
    }

    /// The step in the plan's words.
    pub fn describe(&self) -> String {
        self.program.schedule.steps[self.index].describe(&self.program.graph)
    }
}
