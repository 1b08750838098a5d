//! What a warp can reach: the memories, by the spaces of PTX.

use crate::faults::Mistake;
use crate::machine::{WARP, lanes};
use crate::memory::{
    Allocation, Caller, Global, LOCAL_WINDOW, Local, Meeting, SHARED_WINDOW, Shared, Visitor, uninitialized,
};
use crate::ptx::Space;

/// A mistake and the thread of the warp that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// The thread.
    pub lane: usize,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What a warp can reach.
#[derive(Debug)]
pub struct Memories<'a> {
    /// Global memory.
    pub global: &'a Global,
    /// The block's shared memory.
    pub shared: &'a mut Shared,
    /// The warp's local memory.
    pub local: &'a mut Local,
    /// The kernel's parameters.
    pub parameters: &'a [u8],
    /// The number in the block of the warp's first thread.
    pub first_thread: u16,
    /// How many barriers of its own the warp has passed.
    pub warp_phase: u16,
    /// Whether the last thread goes first.
    pub reversed: bool,
    /// The block, where races between blocks are looked for.
    pub caller: Option<Caller>,
}

/// The allocation that the last access lay in, where the next is likely to lie too.
pub type Near<'a> = Option<&'a Allocation>;

impl<'a> Memories<'a> {
    /// The threads in a mask, in the order in which they go.
    #[inline(always)]
    pub fn order(&self, mask: u32) -> impl Iterator<Item = usize> + use<> {
        let reversed = self.reversed;
        let mask = if reversed { mask.reverse_bits() } else { mask };
        lanes(mask).map(move |lane| if reversed { WARP - 1 - lane } else { lane })
    }

    /// Who a thread is to shared memory.
    #[inline(always)]
    pub fn visitor(&self, lane: usize) -> Visitor {
        Visitor { thread: self.first_thread + lane as u16, warp_phase: self.warp_phase }
    }

    /// Reads 1, 2, 4 or 8 bytes for a thread.
    #[inline(always)]
    pub fn load<const SIZE: usize>(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        near: &mut Near<'a>,
    ) -> Result<u64, Mistake> {
        match resolve(space, address) {
            (Space::Shared, address) => self.shared.load::<SIZE>(self.visitor(lane), address),
            (Space::Local, address) => self.local.load(lane, address, SIZE),
            (Space::Parameter, address) => self.parameter(address, SIZE),
            _ => {
                let (allocation, offset) = self.allocation::<SIZE>("load", address, near)?;
                if !allocation.is_written::<SIZE>(offset) {
                    return Err(uninitialized(allocation, offset, SIZE));
                }
                if let Some(caller) = self.caller.filter(|_| SIZE >= 4)
                    && let Some(meeting) = allocation.visits().read(offset, SIZE, caller)
                {
                    return Err(race(address, meeting));
                }
                Ok(allocation.load::<SIZE>(offset))
            }
        }
    }

    /// Writes 1, 2, 4 or 8 bytes for a thread.
    #[inline(always)]
    pub fn store<const SIZE: usize>(
        &mut self,
        space: Space,
        lane: usize,
        address: u64,
        value: u64,
        near: &mut Near<'a>,
    ) -> Result<(), Mistake> {
        match resolve(space, address) {
            (Space::Shared, address) => self.shared.store::<SIZE>(self.visitor(lane), address, value),
            (Space::Local, address) => self.local.store(lane, address, SIZE, value),
            _ => {
                let (allocation, offset) = self.allocation::<SIZE>("store", address, near)?;
                // Blocks that write the same value do no harm.
                let cut = value & (u64::MAX >> (64 - 8 * SIZE));
                if let Some(caller) = self.caller.filter(|_| SIZE >= 4)
                    && let Some(meeting) = allocation.visits().write(offset, SIZE, caller)
                    && !(allocation.is_written::<SIZE>(offset) && allocation.load::<SIZE>(offset) == cut)
                {
                    return Err(race(address, meeting));
                }
                allocation.store::<SIZE>(offset, value);
                Ok(())
            }
        }
    }

    /// The allocation of an access to global memory, which is checked to lie inside and to be aligned.
    #[inline(always)]
    pub fn allocation<const SIZE: usize>(
        &self,
        access: &'static str,
        address: u64,
        near: &mut Near<'a>,
    ) -> Result<(&'a Allocation, usize), Mistake> {
        let (allocation, offset) = match near.and_then(|near| Some((near, near.offset(address, SIZE)?))) {
            Some(found) => found,
            None => match self.global.find(address, SIZE) {
                Some(found) => found,
                None => return Err(self.global.out_of_bounds(access, address, SIZE)),
            },
        };
        *near = Some(allocation);
        if !address.is_multiple_of(SIZE as u64) {
            return Err(Mistake::Misaligned { space: "global", access, address, size: SIZE });
        }
        Ok((allocation, offset))
    }

    fn parameter(&self, address: u64, size: usize) -> Result<u64, Mistake> {
        let bytes = usize::try_from(address).ok().and_then(|at| self.parameters.get(at..at.checked_add(size)?));
        let Some(bytes) = bytes else {
            let nearest = format!("the kernel has {} bytes of parameters", self.parameters.len());
            return Err(Mistake::OutOfBounds { space: "parameter", access: "load", address, size, nearest });
        };
        let mut value = [0; 8];
        value[..size].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(value))
    }
}

fn race(address: u64, Meeting { other, how }: Meeting) -> Mistake {
    Mistake::RaceOfBlocks { address, other, how }
}

/// The space that a generic address lies in, and the address there.
#[inline(always)]
pub fn resolve(space: Space, address: u64) -> (Space, u64) {
    const WINDOW: u64 = 1 << 24;
    if space != Space::Generic {
        return (space, address);
    }
    match address {
        _ if address.wrapping_sub(SHARED_WINDOW) < WINDOW => (Space::Shared, address - SHARED_WINDOW),
        _ if address.wrapping_sub(LOCAL_WINDOW) < WINDOW => (Space::Local, address - LOCAL_WINDOW),
        _ => (Space::Global, address),
    }
}
