//! The arena: one plain allocation.

use std::sync::Arc;

use cudarc::driver::result;
use cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;

use super::card::Card;
use crate::device::DriverMemory;
use crate::error::Error;

/// The arena of a card.
pub struct CudaArena {
    card: Arc<Card>,
    base: u64,
    bytes: u64,
    memory: DriverMemory,
}

impl CudaArena {
    /// So many bytes, all zero.
    pub(super) fn new(card: &Arc<Card>, bytes: u64) -> Result<CudaArena, Error> {
        // An allocation of no bytes is not one.
        let bytes = bytes.max(1);
        let (free_before, total) = card.memory()?;
        let lacking = |free| Error::LowMemory { device: card.name().to_string(), bytes, free };
        let length = usize::try_from(bytes).map_err(|_| lacking(free_before))?;
        if bytes > free_before {
            return Err(lacking(free_before));
        }
        // Not `cuMemAllocAsync`, whose pool takes more than was asked for, and keeps it.
        // SAFETY: `drop` frees it.
        let base = match unsafe { result::malloc_sync(length) } {
            Err(error) if error.0 == CUDA_ERROR_OUT_OF_MEMORY => return Err(lacking(free_before)),
            other => other.map_err(|error| card.error("allocating the arena", error))?,
        };
        let memory = DriverMemory { total, free_before, free_after: free_before };
        let mut arena = CudaArena { card: Arc::clone(card), base, bytes, memory };
        arena.memory.free_after = card.memory()?.0;
        // SAFETY: the allocation has this length.
        let zeroed = unsafe { result::memset_d8_async(base, 0, length, card.stream()) };
        zeroed.map_err(|error| card.error("zeroing the arena", error))?;
        Ok(arena)
    }

    /// The address of the first byte on the card.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// What the driver said of its memory.
    pub(super) fn memory(&self) -> DriverMemory {
        self.memory
    }

    /// The address of a range, which must lie in the arena.
    fn address(&self, offset: u64, bytes: usize) -> u64 {
        let end = offset.checked_add(bytes as u64);
        assert!(end.is_some_and(|end| end <= self.bytes), "a copy of {bytes} bytes ends beyond the arena");
        self.base + offset
    }

    /// Copies bytes to the card, after all work before.
    pub(super) fn upload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let to = self.address(offset, bytes.len());
        let doing = || format!("copying {} bytes to the card", bytes.len());
        // SAFETY: within the allocation, as was checked.
        unsafe { result::memcpy_htod_sync(to, bytes) }.map_err(|error| self.card.error(&doing(), error))
    }

    /// Copies bytes from the card, after all work before. A failure of that work shows here.
    pub(super) fn download(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let (from, length) = (self.address(offset, bytes.len()), bytes.len());
        let doing = || format!("copying {length} bytes from the card, once the work before was done");
        // SAFETY: within the allocation, as was checked.
        unsafe { result::memcpy_dtoh_sync(bytes, from) }.map_err(|error| self.card.error(&doing(), error))
    }
}

impl Drop for CudaArena {
    fn drop(&mut self) {
        if self.card.bind().is_ok() {
            // SAFETY: allocated in `new`. Freeing waits for the work that uses it.
            let _ = unsafe { result::free_sync(self.base) };
        }
    }
}
