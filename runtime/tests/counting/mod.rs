//! An allocator that counts every allocation of the process. A program that includes this file has it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use plimsoll_plan::placement::ALIGNMENT;

/// The system's allocator, counted.
struct Counting;

/// Allocations so far.
pub static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static ARENAS: AtomicU64 = AtomicU64::new(0);
static ARENA_BYTES: AtomicU64 = AtomicU64::new(0);
static OTHER_BYTES: AtomicU64 = AtomicU64::new(0);

/// What was allocated, whether or not it was freed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocated {
    /// Allocations that are aligned as arenas are; nothing else is.
    pub arenas: u64,
    /// Their bytes.
    pub arena_bytes: u64,
    /// The bytes of all other allocations together.
    pub other_bytes: u64,
}

impl Allocated {
    /// From the process's start on.
    pub fn so_far() -> Allocated {
        let [arenas, arena_bytes, other_bytes] = [&ARENAS, &ARENA_BYTES, &OTHER_BYTES].map(|count| count.load(SeqCst));
        Allocated { arenas, arena_bytes, other_bytes }
    }

    /// From `before` on, there was one allocation of exactly `bytes` as an arena, and all others together are below a bound.
    pub fn assert_one_arena(before: Allocated, bytes: u64, bound: u64, what: &str) {
        let now = Allocated::so_far();
        let arenas = (now.arenas - before.arenas, now.arena_bytes - before.arena_bytes);
        assert_eq!(arenas, (1, bytes), "{what}: one arena of the planned bytes");
        let others = now.other_bytes - before.other_bytes;
        assert!(others < bound, "{what}: {others} bytes beside the arena, {bound} are the bound");
    }
}

fn count(layout: Layout) {
    ALLOCATIONS.fetch_add(1, SeqCst);
    if layout.align() as u64 == ALIGNMENT {
        ARENAS.fetch_add(1, SeqCst);
        ARENA_BYTES.fetch_add(layout.size() as u64, SeqCst);
    } else {
        OTHER_BYTES.fetch_add(layout.size() as u64, SeqCst);
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
        // All of the new size, though most of it may be where it was.
        count(Layout::from_size_align(size, layout.align()).unwrap_or(layout));
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
