//! One allocation of global memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::Visits;

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
    /// Who touched it, once a launch looks for races between blocks.
    visits: OnceLock<Visits>,
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
            (Some(bytes), Some(written)) => {
                Some(Allocation { address, size, of_module, bytes, written, visits: OnceLock::new() })
            }
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

    /// Who touched it. It takes four times its bytes.
    pub fn visits(&self) -> &Visits {
        self.visits.get_or_init(|| Visits::new(self.size))
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
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        self.slices_mut().0[offset..offset + from.len()].copy_from_slice(from);
        self.mark(offset, from.len(), true);
    }

    /// Repeats a pattern over a range.
    pub fn fill(&mut self, offset: usize, pattern: &[u8], count: usize) {
        let range = &mut self.slices_mut().0[offset..offset + pattern.len() * count];
        match pattern {
            [byte] => range.fill(*byte),
            _ => range.chunks_exact_mut(pattern.len()).for_each(|place| place.copy_from_slice(pattern)),
        }
        self.mark(offset, pattern.len() * count, true);
    }

    /// The bytes of a range.
    pub fn read(&mut self, offset: usize, size: usize) -> &[u8] {
        &self.slices_mut().0[offset..offset + size]
    }

    /// Marks bytes as written, or as never written.
    pub fn mark(&mut self, offset: usize, size: usize, written: bool) {
        self.slices_mut().1[offset..offset + size].fill(written.into());
    }

    /// The first byte of a range that was never written.
    pub fn first_unwritten(&mut self, offset: usize, size: usize) -> Option<usize> {
        let marks = &self.slices_mut().1[offset..offset + size];
        marks.iter().position(|mark| *mark == 0).map(|place| offset + place)
    }

    /// A range with its marks, for `paste`.
    pub fn cut(&mut self, offset: usize, size: usize) -> [Vec<u8>; 2] {
        let (bytes, marks) = self.slices_mut();
        [bytes, marks].map(|memory| memory[offset..offset + size].to_vec())
    }

    /// Writes a range with its marks: what was never written stays so.
    pub fn paste(&mut self, offset: usize, [bytes, marks]: &[Vec<u8>; 2]) {
        let (to_bytes, to_marks) = self.slices_mut();
        to_bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        to_marks[offset..offset + marks.len()].copy_from_slice(marks);
    }

    /// The bytes and their marks, while no kernel runs.
    fn slices_mut(&mut self) -> (&mut [u8], &mut [u8]) {
        let size = self.size;
        // SAFETY: both are of `size` initialized bytes and do not overlap; the borrow is the only one there is.
        let slice = |memory: NonNull<u8>| unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), size) };
        (slice(self.bytes), slice(self.written))
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
        let mut memory = Allocation::new(256, 16, false).unwrap();
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
        let [mut a, mut b] = [256, 1024].map(|address| Allocation::new(address, 8, false).unwrap());
        a.write(2, &[1, 2, 3]);
        b.paste(0, &a.cut(1, 4));
        assert_eq!(b.read(0, 4), [0, 1, 2, 3]);
        assert_eq!((b.first_unwritten(0, 4), b.first_unwritten(1, 3)), (Some(0), None));
        b.fill(2, &[7, 8], 3);
        assert_eq!(b.read(0, 8), [0, 1, 7, 8, 7, 8, 7, 8]);
        b.fill(5, &[9], 2);
        assert_eq!(b.read(4, 4), [7, 9, 9, 8]);
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
