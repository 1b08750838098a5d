//! What a device does: hold one arena, and run steps in it.

use std::fmt;
use std::ops::Range;

pub use crate::any_device::{AnyArena, AnyDevice, AnyProgram, best};
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

    /// What the driver says of its memory before and after it gave an arena, where there is a driver.
    fn driver_memory(&self, _arena: &Self::Arena) -> Option<DriverMemory> {
        None
    }
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

/// The memory of a card, in the driver's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverMemory {
    /// All of it.
    pub total: u64,
    /// What was free before the arena was allocated.
    pub free_before: u64,
    /// What was free after.
    pub free_after: u64,
}

/// What was planned and what was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryReport {
    /// What the plan says.
    pub planned: u64,
    /// What the trainer asked its device for.
    pub allocated: u64,
    /// What the driver of a card says.
    pub driver: Option<DriverMemory>,
}

impl MemoryReport {
    /// What the driver took for the arena, in its own units; on the CPU, what was allocated.
    pub fn given(&self) -> u64 {
        self.driver.map_or(self.allocated, |driver| driver.free_before.saturating_sub(driver.free_after))
    }

    /// What was taken of the card before the arena was allocated: by the context with its kernels and libraries, and by
    /// other programs. This is what `reserve` in a budget is for.
    pub fn context(&self) -> u64 {
        self.driver.map_or(0, |driver| driver.total.saturating_sub(driver.free_before))
    }
}

impl fmt::Display for MemoryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "planned    {:>14} bytes", self.planned)?;
        write!(f, "allocated  {:>14} bytes", self.allocated)?;
        if let Some(driver) = self.driver {
            writeln!(f, "\ngiven      {:>14} bytes, as the driver counts", self.given())?;
            writeln!(
                f,
                "context    {:>14} bytes taken before, other programs' among them: see `reserve`",
                self.context()
            )?;
            write!(f, "free       {:>14} of {} bytes", driver.free_after, driver.total)?;
        }
        Ok(())
    }
}
