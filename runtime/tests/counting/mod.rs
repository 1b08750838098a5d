//! An allocator that counts every allocation of the process. A program that includes this file has it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use plimsoll_plan::placement::ALIGNMENT;

/// The system's allocator, counted.
struct Counting;

/// Allocations so far.
pub static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes of allocations that are aligned as arenas are.
pub static ARENA_BYTES: AtomicU64 = AtomicU64::new(0);

fn count(layout: Layout) {
    ALLOCATIONS.fetch_add(1, SeqCst);
    if layout.align() as u64 == ALIGNMENT {
        ARENA_BYTES.fetch_add(layout.size() as u64, SeqCst);
    }
}

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
