//! A device that is chosen while the program runs.

use std::ops::Range;

use crate::cpu::{Cpu, CpuArena, CpuProgram};
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, CudaArena};
use crate::device::{Arguments, Device, DriverMemory};
use crate::error::Error;
use crate::program::Program;

/// The best device of this machine: the first card that CUDA finds, if this was built with the feature `cuda`; else the
/// CPU, with all its threads.
///
/// # Errors
/// A card that is there and can't be used, because it or its driver is too old or failing. To do without it,
/// take `Cpu::new()`.
pub fn best() -> Result<AnyDevice, Error> {
    #[cfg(feature = "cuda")]
    match Cuda::new(0) {
        Err(Error::NoCuda { .. }) => {}
        cuda => return cuda.map(AnyDevice::Cuda),
    }
    Ok(AnyDevice::Cpu(Cpu::new()))
}

/// One of the devices.
#[non_exhaustive]
pub enum AnyDevice {
    /// The CPU.
    Cpu(Cpu),
    /// A card of NVIDIA's.
    #[cfg(feature = "cuda")]
    Cuda(Cuda),
}

/// The arena of one of the devices.
#[non_exhaustive]
pub enum AnyArena {
    /// The CPU's.
    Cpu(CpuArena),
    /// A card's.
    #[cfg(feature = "cuda")]
    Cuda(CudaArena),
}

/// A program of one of the devices.
#[non_exhaustive]
pub enum AnyProgram {
    /// The CPU's.
    Cpu(CpuProgram),
    /// A card's.
    #[cfg(feature = "cuda")]
    Cuda(Program),
}

impl From<Cpu> for AnyDevice {
    fn from(cpu: Cpu) -> Self {
        AnyDevice::Cpu(cpu)
    }
}

#[cfg(feature = "cuda")]
impl From<Cuda> for AnyDevice {
    fn from(cuda: Cuda) -> Self {
        AnyDevice::Cuda(cuda)
    }
}

impl AsRef<Program> for AnyProgram {
    fn as_ref(&self) -> &Program {
        match self {
            AnyProgram::Cpu(program) => program.as_ref(),
            #[cfg(feature = "cuda")]
            AnyProgram::Cuda(program) => program,
        }
    }
}

/// That an arena or a program was given to a device of another kind, which no trainer does.
#[cfg(feature = "cuda")]
fn of_another_kind(device: &AnyDevice) -> Error {
    Error::Device { device: device.name(), message: "the arena or the program is another device's".to_string() }
}

impl Device for AnyDevice {
    type Arena = AnyArena;
    type Prepared = AnyProgram;

    fn name(&self) -> String {
        match self {
            AnyDevice::Cpu(cpu) => cpu.name(),
            #[cfg(feature = "cuda")]
            AnyDevice::Cuda(cuda) => cuda.name(),
        }
    }

    fn allocate(&mut self, bytes: u64) -> Result<AnyArena, Error> {
        match self {
            AnyDevice::Cpu(cpu) => cpu.allocate(bytes).map(AnyArena::Cpu),
            #[cfg(feature = "cuda")]
            AnyDevice::Cuda(cuda) => cuda.allocate(bytes).map(AnyArena::Cuda),
        }
    }

    fn prepare(&mut self, program: Program) -> Result<AnyProgram, Error> {
        match self {
            AnyDevice::Cpu(cpu) => cpu.prepare(program).map(AnyProgram::Cpu),
            #[cfg(feature = "cuda")]
            AnyDevice::Cuda(cuda) => cuda.prepare(program).map(AnyProgram::Cuda),
        }
    }

    fn upload(&mut self, arena: &mut AnyArena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        match (self, arena) {
            (AnyDevice::Cpu(cpu), AnyArena::Cpu(arena)) => cpu.upload(arena, offset, bytes),
            #[cfg(feature = "cuda")]
            (AnyDevice::Cuda(cuda), AnyArena::Cuda(arena)) => cuda.upload(arena, offset, bytes),
            #[cfg(feature = "cuda")]
            (device, _) => Err(of_another_kind(device)),
        }
    }

    fn download(&mut self, arena: &AnyArena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        match (self, arena) {
            (AnyDevice::Cpu(cpu), AnyArena::Cpu(arena)) => cpu.download(arena, offset, bytes),
            #[cfg(feature = "cuda")]
            (AnyDevice::Cuda(cuda), AnyArena::Cuda(arena)) => cuda.download(arena, offset, bytes),
            #[cfg(feature = "cuda")]
            (device, _) => Err(of_another_kind(device)),
        }
    }

    fn run(
        &mut self,
        program: &mut AnyProgram,
        arena: &mut AnyArena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        match (self, program, arena) {
            (AnyDevice::Cpu(cpu), AnyProgram::Cpu(program), AnyArena::Cpu(arena)) => {
                cpu.run(program, arena, steps, arguments)
            }
            #[cfg(feature = "cuda")]
            (AnyDevice::Cuda(cuda), AnyProgram::Cuda(program), AnyArena::Cuda(arena)) => {
                cuda.run(program, arena, steps, arguments)
            }
            #[cfg(feature = "cuda")]
            (device, ..) => Err(of_another_kind(device)),
        }
    }

    fn driver_memory(&self, arena: &AnyArena) -> Option<DriverMemory> {
        match (self, arena) {
            #[cfg(feature = "cuda")]
            (AnyDevice::Cuda(cuda), AnyArena::Cuda(arena)) => cuda.driver_memory(arena),
            _ => None,
        }
    }
}
