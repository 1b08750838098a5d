//! One allocation of global memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The alignment of allocations: as little as a driver promises.
pub const ALIGNMENT: u64 = 256;

/// Bytes of the device with their marks. Blocks run at the same time and may touch the same bytes, as on a GPU, so that every access
/// is atomic; what the kernels race for is theirs to sort out.
#[derive(Debug)]
pub struct Allocation {
    address: u64,
    size: usize,
    /// Whether it holds a module's variables.
    of_module: bool,
    bytes: NonNull<u8>,
    /// One byte for each: 1 where it was written.
    written: NonNull<u8>,
}

// SAFETY: the memory belongs to the allocation, and is only touched through atomics.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Memory of `size` bytes at a device address; `None` when this machine has no memory for it.
    pub fn new(address: u64, size: usize, of_module: bool) -> Option<Allocation> {
        debug_assert!(address.is_multiple_of(ALIGNMENT) && size > 0);
        let layout = Self::layout(size)?;
        // SAFETY: the layout's size is not zero.
        let [bytes, written] = [unsafe { alloc_zeroed(layout) }, unsafe { alloc_zeroed(layout) }].map(NonNull::new);
        match (bytes, written) {
            (Some(bytes), Some(written)) => Some(Allocation { address, size, of_module, bytes, written }),
            (some, other) => {
                for memory in [some, other].into_iter().flatten() {
                    // SAFETY: just allocated with this layout.
                    unsafe { dealloc(memory.as_ptr(), layout) };
                }
                None
            }
        }
    }

    fn layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size, ALIGNMENT as usize).ok()
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it holds a module's variables.
    pub fn of_module(&self) -> bool {
        self.of_module
    }

    /// The offset of an access that lies inside.
    #[inline(always)]
    pub fn offset(&self, address: u64, size: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.address) as usize;
        (offset < self.size && size <= self.size - offset).then_some(offset)
    }

    /// Reads 1, 2, 4 or 8 bytes at a multiple of that.
    #[inline(always)]
    pub fn load<const SIZE: usize>(&self, offset: usize) -> u64 {
        self.check::<SIZE>(offset);
        // SAFETY: inside and aligned, as just checked.
        unsafe { load::<SIZE>(self.bytes.as_ptr().add(offset)) }
    }

    /// Whether all of 1, 2, 4 or 8 bytes were written.
    #[inline(always)]
    pub fn is_written<const SIZE: usize>(&self, offset: usize) -> bool {
        self.check::<SIZE>(offset);
        // SAFETY: inside and aligned, as just checked.
        unsafe { load::<SIZE>(self.written.as_ptr().add(offset)) == marks::<SIZE>() }
    }

    /// Writes 1, 2, 4 or 8 bytes at a multiple of that.
    #[inline(always)]
    pub fn store<const SIZE: usize>(&self, offset: usize, value: u64) {
        self.check::<SIZE>(offset);
        // SAFETY: inside and aligned, as just checked.
        unsafe {
            store::<SIZE>(self.bytes.as_ptr().add(offset), value);
            store::<SIZE>(self.written.as_ptr().add(offset), marks::<SIZE>());
        }
    }

    /// Replaces 4 or 8 bytes by a function of them, at once, and gives what was there.
    pub fn update<const SIZE: usize>(&self, offset: usize, f: impl Fn(u64) -> u64) -> u64 {
        self.check::<SIZE>(offset);
        let at = self.bytes.as_ptr().wrapping_add(offset);
        // SAFETY: inside and aligned, as just checked.
        unsafe {
            if SIZE == 8 {
                let cell = AtomicU64::from_ptr(at.cast());
                cell.fetch_update(Relaxed, Relaxed, |old| Some(f(old))).unwrap_or_default()
            } else {
                let cell = AtomicU32::from_ptr(at.cast());
                cell.fetch_update(Relaxed, Relaxed, |old| Some(f(old.into()) as u32)).unwrap_or_default().into()
            }
        }
    }

    #[inline(always)]
    fn check<const SIZE: usize>(&self, offset: usize) {
        assert!(offset < self.size && SIZE <= self.size - offset && offset.is_multiple_of(SIZE));
    }

    /// Copies bytes in.
    pub fn write(&self, offset: usize, from: &[u8]) {
        let cells = &self.cells(self.bytes)[offset..offset + from.len()];
        cells.iter().zip(from).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
        self.mark(offset, from.len(), true);
    }

    /// Copies bytes out.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let cells = &self.cells(self.bytes)[offset..offset + to.len()];
        cells.iter().zip(to).for_each(|(cell, byte)| *byte = cell.load(Relaxed));
    }

    /// Marks bytes as written, or as never written.
    pub fn mark(&self, offset: usize, size: usize, written: bool) {
        let cells = &self.cells(self.written)[offset..offset + size];
        cells.iter().for_each(|cell| cell.store(written.into(), Relaxed));
    }

    /// The first byte of a range that was never written.
    pub fn first_unwritten(&self, offset: usize, size: usize) -> Option<usize> {
        let cells = &self.cells(self.written)[offset..offset + size];
        cells.iter().position(|cell| cell.load(Relaxed) == 0).map(|place| offset + place)
    }

    /// Copies a range with its marks: what was never written stays so. The ranges may overlap.
    pub fn copy(&self, offset: usize, from: &Allocation, from_offset: usize, size: usize) {
        for (to, from) in
            [(self.cells(self.bytes), from.cells(from.bytes)), (self.cells(self.written), from.cells(from.written))]
        {
            let from: Vec<u8> = from[from_offset..from_offset + size].iter().map(|cell| cell.load(Relaxed)).collect();
            to[offset..offset + size].iter().zip(from).for_each(|(cell, byte)| cell.store(byte, Relaxed));
        }
    }

    fn cells(&self, memory: NonNull<u8>) -> &[AtomicU8] {
        // SAFETY: `memory` is one of the two that `new` made, of `size` initialized bytes, and only atomics touch it.
        unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), self.size) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let layout = Self::layout(self.size).expect("the layout that the memory was made with");
        for memory in [self.bytes, self.written] {
            // SAFETY: `new` allocated both with this layout.
            unsafe { dealloc(memory.as_ptr(), layout) };
        }
    }
}

/// The marks of written bytes.
const fn marks<const SIZE: usize>() -> u64 {
    0x0101_0101_0101_0101 >> (64 - 8 * SIZE)
}

/// # Safety
/// `at` points to `SIZE` bytes, is aligned to `SIZE`, and only atomics touch the bytes at the same time.
#[inline(always)]
unsafe fn load<const SIZE: usize>(at: *mut u8) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        match SIZE {
            1 => AtomicU8::from_ptr(at).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(at.cast()).load(Relaxed).into(),
            4 => AtomicU32::from_ptr(at.cast()).load(Relaxed).into(),
            _ => AtomicU64::from_ptr(at.cast()).load(Relaxed),
        }
    }
}

/// # Safety
/// As for `load`.
#[inline(always)]
unsafe fn store<const SIZE: usize>(at: *mut u8, value: u64) {
    // SAFETY: as the caller promises.
    unsafe {
        match SIZE {
            1 => AtomicU8::from_ptr(at).store(value as u8, Relaxed),
            2 => AtomicU16::from_ptr(at.cast()).store(value as u16, Relaxed),
            4 => AtomicU32::from_ptr(at.cast()).store(value as u32, Relaxed),
            _ => AtomicU64::from_ptr(at.cast()).store(value, Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_knows_whether_it_was_written() {
        let memory = Allocation::new(256, 16, false).unwrap();
        memory.store::<4>(4, 0x0102_0304);
        memory.store::<1>(9, 7);
        assert!(memory.is_written::<4>(4) && memory.is_written::<1>(9) && memory.is_written::<2>(6));
        assert!(!memory.is_written::<8>(0) && !memory.is_written::<2>(8));
        assert_eq!(memory.load::<2>(4), 0x0304);
        assert_eq!(memory.first_unwritten(4, 8), Some(8));
        memory.mark(5, 1, false);
        assert_eq!(memory.first_unwritten(4, 4), Some(5));
    }

    #[test]
    fn copies_keep_the_marks() {
        let [a, b] = [256, 1024].map(|address| Allocation::new(address, 8, false).unwrap());
        a.write(2, &[1, 2, 3]);
        b.copy(0, &a, 1, 4);
        let mut out = [9; 4];
        b.read(0, &mut out);
        assert_eq!(out, [0, 1, 2, 3]);
        assert_eq!((b.first_unwritten(0, 4), b.first_unwritten(1, 3)), (Some(0), None));
        a.copy(3, &a, 2, 3);
        a.read(2, &mut out);
        assert_eq!(out, [1, 1, 2, 3]);
    }

    #[test]
    fn an_offset_is_inside_or_none() {
        let memory = Allocation::new(512, 10, false).unwrap();
        assert_eq!(memory.offset(512, 10), Some(0));
        assert_eq!(memory.offset(521, 1), Some(9));
        assert_eq!(memory.offset(521, 2), None);
        assert_eq!(memory.offset(522, 0), None);
        assert_eq!(memory.offset(511, 1), None);
        assert_eq!(memory.offset(u64::MAX, 4), None);
    }

    #[test]
    fn an_update_gives_what_was_there() {
        let memory = Allocation::new(512, 16, false).unwrap();
        memory.store::<4>(4, 5);
        assert_eq!(memory.update::<4>(4, |old| old + 2), 5);
        assert_eq!(memory.load::<4>(4), 7);
        assert_eq!(memory.update::<8>(8, |_| u64::MAX), 0);
        assert_eq!(memory.load::<8>(8), u64::MAX);
    }
}
