//! In the middle of an epoch a loader allocates nothing, on any thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_runtime::data::{Dataset, Loader, Normalize, RandomCrop, RandomHorizontalFlip, digits};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of this file: others would be counted, too.
#[test]
fn nothing_is_allocated_in_the_middle_of_an_epoch() {
    for workers in [1, 3] {
        let loader = Loader::new(digits().unwrap().train.to_tensor(), 8).unwrap().shuffle(1);
        let loader = loader.transform(RandomCrop::new(8).padding(1)).unwrap();
        let loader = loader.transform(RandomHorizontalFlip::default()).unwrap();
        let loader = loader.transform(Normalize::new([0.3], [0.4])).unwrap();
        let mut loader = loader.workers(NonZeroUsize::new(workers).unwrap());
        for epoch in 0..2 {
            let mut batches = loader.epoch();
            // Threads start, and channels make room for those who wait at them.
            for batch in batches.by_ref().take(30) {
                batch.unwrap();
            }
            let before = ALLOCATIONS.load(Ordering::SeqCst);
            let mut sum = 0.0;
            for (number, batch) in batches.by_ref().take(70).enumerate() {
                sum += batch.unwrap().inputs().iter().sum::<f32>();
                // Now the threads wait for the caller, now the caller for them.
                if number % 10 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            let allocations = ALLOCATIONS.load(Ordering::SeqCst) - before;
            assert_eq!(allocations, 0, "{workers} threads, epoch {epoch}");
            assert!(sum.is_finite());
        }
    }
}
