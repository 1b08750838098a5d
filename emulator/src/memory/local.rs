//! Local memory: each thread of a warp has as much as the kernel declares.

use crate::faults::Mistake;
use crate::machine::WARP;

/// The local memory of a warp.
#[derive(Debug, Default)]
pub struct Local {
    /// The bytes of a thread.
    size: usize,
    bytes: Vec<u8>,
    written: Vec<bool>,
}

impl Local {
    /// Memory of `size` bytes for each thread.
    pub fn new(size: usize) -> Local {
        Local { size, bytes: vec![0; size * WARP], written: vec![false; size * WARP] }
    }

    /// Forgets everything, for the next block.
    pub fn clear(&mut self) {
        self.written.fill(false);
    }

    /// Reads 1, 2, 4 or 8 bytes of a thread.
    pub fn load(&self, lane: usize, address: u64, size: usize) -> Result<u64, Mistake> {
        let at = self.place("load", lane, address, size)?;
        if !self.written[at..at + size].iter().all(|written| *written) {
            let within = format!("byte {address} of the {} that the thread has", self.size);
            return Err(Mistake::Uninitialized { space: "local", address, size, within });
        }
        let mut value = [0; 8];
        value[..size].copy_from_slice(&self.bytes[at..at + size]);
        Ok(u64::from_le_bytes(value))
    }

    /// Writes 1, 2, 4 or 8 bytes of a thread.
    pub fn store(&mut self, lane: usize, address: u64, size: usize, value: u64) -> Result<(), Mistake> {
        let at = self.place("store", lane, address, size)?;
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
        self.written[at..at + size].fill(true);
        Ok(())
    }

    fn place(&self, access: &'static str, lane: usize, address: u64, size: usize) -> Result<usize, Mistake> {
        if address.checked_add(size as u64).is_none_or(|end| end > self.size as u64) {
            let nearest = format!("a thread has {} bytes", self.size);
            return Err(Mistake::OutOfBounds { space: "local", access, address, size, nearest });
        }
        if !address.is_multiple_of(size as u64) {
            return Err(Mistake::Misaligned { space: "local", access, address, size });
        }
        Ok(lane * self.size + address as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_memory_of_their_own() {
        let mut local = Local::new(16);
        local.store(3, 8, 8, 0x0102_0304_0506_0708).unwrap();
        assert_eq!(local.load(3, 12, 4), Ok(0x0102_0304));
        assert!(matches!(local.load(4, 8, 8), Err(Mistake::Uninitialized { .. })));
        assert!(matches!(local.load(3, 4, 8), Err(Mistake::Misaligned { .. })));
        assert!(matches!(local.store(3, 16, 1, 0), Err(Mistake::OutOfBounds { .. })));
        assert!(matches!(local.store(3, u64::MAX, 4, 0), Err(Mistake::OutOfBounds { .. })));
        local.clear();
        assert!(local.load(3, 8, 8).is_err());
    }
}
