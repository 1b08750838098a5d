//! The CPU's arena: one allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use plimsoll_plan::placement::ALIGNMENT;

/// One allocation, zeroed, aligned to [`ALIGNMENT`].
pub struct Memory {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to this value alone, and reading it needs a reference to it.
unsafe impl Send for Memory {}
// SAFETY: as above; writing it needs an exclusive reference.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates so many bytes; `None` where the system has not as many.
    pub fn new(bytes: u64) -> Option<Memory> {
        // An allocation of no bytes is not one.
        let layout = Layout::from_size_align(usize::try_from(bytes.max(1)).ok()?, ALIGNMENT as usize).ok()?;
        // SAFETY: the layout's size is not zero.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Memory { base, layout })
    }

    /// The first byte.
    pub fn base(&mut self) -> NonNull<u8> {
        self.base
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation has this size and was zeroed; `&self` keeps writers out.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.layout.size()) }
    }

    /// All bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` keeps everyone else out.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
