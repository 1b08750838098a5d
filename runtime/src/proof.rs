//! Devices that put a plan to the proof. Each wraps another device and must give bit-equal results.
//!
//! - [`Poisoned`] fills all memory that the plan calls dead with NaN, so that whoever reads it shows.
//! - [`Apart`] gives every buffer memory of its own between guards, so that whoever writes beyond it shows, and whatever
//!   worked only because two buffers share memory does not.

use std::ops::Range;

use plimsoll_plan::placement::ALIGNMENT;
use plimsoll_plan::schedule::Access;
use plimsoll_plan::shape::Size;

use crate::device::{Arguments, Device};
use crate::error::Error;
use crate::program::{Instruction, Program, Region};

/// A byte that makes NaN of every float, and nonsense of every index.
const POISON: u8 = 0xFF;

/// A device whose dead memory is poisoned before every step: what belongs to no live buffer, and what the step is to
/// overwrite.
pub struct Poisoned<D> {
    device: D,
    /// Where the persistent buffers of all programs end.
    persistent: u64,
    length: u64,
}

impl<D> Poisoned<D> {
    /// Wraps a device.
    pub fn new(device: D) -> Self {
        Poisoned { device, persistent: 0, length: 0 }
    }
}

impl<D: Device> Poisoned<D> {
    fn poison(&mut self, arena: &mut D::Arena, range: Range<u64>) -> Result<(), Error> {
        let bytes = vec![POISON; (range.end - range.start) as usize];
        self.device.upload(arena, range.start, &bytes)
    }

    fn poison_before(&mut self, program: &Program, arena: &mut D::Arena, step: usize) -> Result<(), Error> {
        for piece in program.dead(step, self.persistent..self.length) {
            self.poison(arena, piece)?;
        }
        for operand in &program.instructions[step].operands {
            let operands = &program.instructions[step].operands;
            let is_read = operands.iter().any(|o| o.buffer == operand.buffer && o.access != Access::Write);
            if operand.access == Access::Write && !is_read {
                self.poison(arena, bytes(&program.region(operand.buffer), program.batch))?;
            }
        }
        Ok(())
    }
}

impl<D: Device> Device for Poisoned<D> {
    type Arena = D::Arena;
    type Prepared = D::Prepared;

    fn name(&self) -> String {
        format!("{} with poison", self.device.name())
    }

    fn allocate(&mut self, bytes: u64) -> Result<D::Arena, Error> {
        self.length = bytes;
        self.device.allocate(bytes)
    }

    fn prepare(&mut self, program: Program) -> Result<D::Prepared, Error> {
        let persistent = &program.regions[..program.schedule.persistent];
        let end = persistent.iter().map(|region| bytes(region, 1).end).max().unwrap_or(0);
        self.persistent = self.persistent.max(end);
        self.device.prepare(program)
    }

    fn upload(&mut self, arena: &mut D::Arena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload(arena, offset, bytes)
    }

    fn download(&mut self, arena: &D::Arena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.device.download(arena, offset, bytes)
    }

    fn run(
        &mut self,
        program: &mut D::Prepared,
        arena: &mut D::Arena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        for step in steps {
            self.poison_before(program.as_ref(), arena, step)?;
            self.device.run(program, arena, step..step + 1, arguments)?;
        }
        Ok(())
    }
}

/// A byte that guards are filled with.
const GUARD: u8 = 0xA5;

/// A device on which no two buffers share memory, and none lies next to another.
pub struct Apart<D> {
    device: D,
    /// The regions of the persistent buffers, the same for all programs.
    persistent: Vec<Region>,
    /// Where all regions so far end.
    end: u64,
    /// Where each guard begins.
    guards: Vec<u64>,
}

impl<D> Apart<D> {
    /// Wraps a device.
    pub fn new(device: D) -> Self {
        Apart { device, persistent: Vec::new(), end: 0, guards: Vec::new() }
    }

    /// A region of its own after all others, and a guard before it.
    fn place(&mut self, region: Region, batch: usize) -> Region {
        self.guards.push(self.end);
        let offset = self.end + ALIGNMENT;
        self.end = offset + (region.bytes(batch) as u64).next_multiple_of(ALIGNMENT);
        Region { offset, ..region }
    }
}

impl<D: Device> Apart<D> {
    fn check_guards(&mut self, program: &Program, arena: &D::Arena, step: usize) -> Result<(), Error> {
        for guard in self.guards.clone() {
            let mut bytes = [0; ALIGNMENT as usize];
            self.device.download(arena, guard, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != GUARD) {
                let step = program.schedule.steps[step].describe(&program.graph);
                let message = format!("{step} wrote outside of its buffers, at byte {guard} of the arena");
                return Err(Error::Device { device: self.name(), message });
            }
        }
        Ok(())
    }
}

impl<D: Device> Device for Apart<D> {
    type Arena = D::Arena;
    type Prepared = D::Prepared;

    fn name(&self) -> String {
        format!("{} with every buffer apart", self.device.name())
    }

    /// As many bytes as the buffers take apart, whatever the plan says. All programs have been prepared before.
    fn allocate(&mut self, _bytes: u64) -> Result<D::Arena, Error> {
        self.guards.push(self.end);
        self.end += ALIGNMENT;
        let mut arena = self.device.allocate(self.end)?;
        for guard in self.guards.clone() {
            self.device.upload(&mut arena, guard, &[GUARD; ALIGNMENT as usize])?;
        }
        Ok(arena)
    }

    fn prepare(&mut self, mut program: Program) -> Result<D::Prepared, Error> {
        let batch = program.batch;
        for i in 0..program.regions.len() {
            let region = program.regions[i];
            program.regions[i] = match self.persistent.get(i) {
                Some(persistent) if i < program.schedule.persistent => *persistent,
                _ => self.place(region, batch),
            };
            if i < program.schedule.persistent && i >= self.persistent.len() {
                self.persistent.push(program.regions[i]);
            }
        }
        // What a step may use beside its buffers lies apart from them as well.
        let spare = program.instructions.iter().map(|i| i.spare.end - i.spare.start).max().unwrap_or(0);
        let room = self.place(Region { offset: 0, size: Size::fixed(spare) }, batch);
        for Instruction { spare, .. } in &mut program.instructions {
            *spare = room.offset..room.offset + (spare.end - spare.start);
        }
        self.device.prepare(program)
    }

    fn upload(&mut self, arena: &mut D::Arena, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.device.upload(arena, offset, bytes)
    }

    fn download(&mut self, arena: &D::Arena, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.device.download(arena, offset, bytes)
    }

    fn run(
        &mut self,
        program: &mut D::Prepared,
        arena: &mut D::Arena,
        steps: Range<usize>,
        arguments: &Arguments,
    ) -> Result<(), Error> {
        for step in steps {
            self.device.run(program, arena, step..step + 1, arguments)?;
            self.check_guards(program.as_ref(), arena, step)?;
        }
        Ok(())
    }
}

fn bytes(region: &Region, batch: usize) -> Range<u64> {
    region.offset..region.offset + region.bytes(batch) as u64
}
