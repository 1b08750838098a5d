//! What a device does: hold one arena, and run steps in it.

use std::ops::Range;

use crate::cpu::Cpu;
use crate::error::Error;
use crate::program::Program;

/// A device: the CPU, or a graphics card.
///
/// A device owns no tensors. It allocates one arena, of exactly the bytes that the plan says, and runs programs whose
/// buffers are offsets into it. Nothing is allocated after [`prepare`](Device::prepare).
pub trait Device {
    /// The one allocation.
    type Arena;
    /// A program with what the device needs beside it: loaded kernels, handles.
    type Prepared: AsRef<Program>;

    /// Its name in messages.
    fn name(&self) -> String;

    /// Allocates an arena of so many bytes, all zero, aligned to
    /// [`ALIGNMENT`](plimsoll_plan::placement::ALIGNMENT).
    ///
    /// # Errors
    /// Where the device has not so much memory.
    fn allocate(&mut self, bytes: u64) -> Result<Self::Arena, Error>;

    /// Makes a program ready to run.
    ///
    /// # Errors
    /// A layer that the device can't run.
    fn prepare(&mut self, program: Program) -> Result<Self::Prepared, Error>;

    /// Copies bytes into the arena. Work that was started before is done before they arrive.
    ///
    /// # Errors
    /// A failure of the device.
    fn upload(&mut self, arena: &mut Self::Arena, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies bytes out of the arena, once all work that was started before is done.
    ///
    /// # Errors
    /// A failure of the device.
    fn download(&mut self, arena: &Self::Arena, offset: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Runs some steps of a program, or starts them where the device works on its own.
    ///
    /// # Errors
    /// A failure of the device.
    fn run(
        &mut self,
        program: &mut Self::Prepared,
        arena: &mut Self::Arena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error>;
}

/// The best device of this machine: the CPU, with all its threads.
///
/// # Errors
/// None yet.
pub fn best() -> Result<Cpu, Error> {
    Ok(Cpu::new())
}

/// What changes from one run of a program to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arguments {
    /// Samples in this batch, at most as many as planned.
    pub batch: usize,
    /// How many batches were run in training before this one: the counter of random masks.
    pub pass: u64,
    /// Which update this is, from 1: the optimizers' count of steps.
    pub update: u64,
    /// The learning rate.
    pub learning_rate: f64,
    /// The seed of random masks.
    pub seed: u64,
}
