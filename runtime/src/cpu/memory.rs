//! The CPU's arena: one allocation.

use std::alloc::{Layout, alloc, dealloc};
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
        let base = NonNull::new(unsafe { alloc(layout) })?;
        ask_for_huge_pages(base, layout.size());
        // SAFETY: the allocation has this size.
        unsafe { base.write_bytes(0, layout.size()) };
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

/// Asks Linux for pages of 2 MiB, before the memory is touched for the first time. A step goes through more of the usual pages
/// than the processor can look up quickly. What the system makes of it is its affair: it is advice.
fn ask_for_huge_pages(base: NonNull<u8>, size: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 2 << 20;
        let start = base.as_ptr().wrapping_add(base.as_ptr().align_offset(PAGE));
        let end = (base.addr().get() + size) / PAGE * PAGE;
        if let Some(length) = end.checked_sub(start.addr()).filter(|length| *length > 0) {
            // SAFETY: whole pages of the allocation, whose contents stay as they are.
            unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (base, size);
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}
