//! Who touched the words of global memory in the launch that runs: finds blocks that touch the same word, at least one of them writing.
//! Nothing orders the blocks of a launch. Accesses of one or two bytes, and atomic ones, take no part.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Set beside the launch when several blocks came.
const SEVERAL: u64 = 1 << 31;

/// The block that makes an access.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The number of the launch, from one.
    pub launch: u32,
    /// The block's number in the grid.
    pub block: u32,
}

impl Caller {
    fn packed(self) -> u64 {
        u64::from(self.launch) << 32 | u64::from(self.block) & (SEVERAL - 1)
    }

    /// Whether a visit was in this launch, and by another block.
    fn meets(self, visit: u64) -> bool {
        visit >> 32 == u64::from(self.launch) && visit != self.packed()
    }
}

/// Another block that touched a word: its number, where it is a single one, and what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meeting {
    /// The other block.
    pub other: Option<u32>,
    /// What the other did, and what this one does.
    pub how: &'static str,
}

impl Meeting {
    fn with(visit: u64, how: &'static str) -> Meeting {
        Meeting { other: (visit & SEVERAL == 0).then_some(visit as u32), how }
    }
}

/// The last visits to the words of an allocation.
#[derive(Debug)]
pub struct Visits {
    writers: Vec<AtomicU64>,
    readers: Vec<AtomicU64>,
}

impl Visits {
    /// Nobody has touched any of `size` bytes.
    pub fn new(size: usize) -> Visits {
        let words = || (0..size.div_ceil(4)).map(|_| AtomicU64::new(0)).collect();
        Visits { writers: words(), readers: words() }
    }

    /// Notes a read of 4 or 8 bytes. A read notes itself before it looks, as a write does, so that of two at once one sees the other.
    pub fn read(&self, offset: usize, size: usize, caller: Caller) -> Option<Meeting> {
        (offset / 4..(offset + size) / 4).find_map(|word| {
            let before = self.readers[word].load(SeqCst);
            let other = if caller.meets(before) { SEVERAL } else { 0 };
            self.readers[word].store(caller.packed() | other, SeqCst);
            let writer = self.writers[word].load(SeqCst);
            caller.meets(writer).then(|| Meeting::with(writer, "another block wrote what this one reads"))
        })
    }

    /// Notes a write of 4 or 8 bytes.
    pub fn write(&self, offset: usize, size: usize, caller: Caller) -> Option<Meeting> {
        (offset / 4..(offset + size) / 4).find_map(|word| {
            let writer = self.writers[word].swap(caller.packed(), SeqCst);
            let reader = self.readers[word].load(SeqCst);
            match () {
                () if caller.meets(writer) => Some(Meeting::with(writer, "two blocks write")),
                () if caller.meets(reader) => Some(Meeting::with(reader, "another block read what this one writes")),
                () => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_launch_meet_where_one_writes() {
        let visits = Visits::new(16);
        let by = |launch, block| Caller { launch, block };
        assert_eq!(visits.write(0, 8, by(1, 0)), None);
        assert_eq!(visits.read(4, 4, by(1, 0)), None);
        let read = visits.read(4, 4, by(1, 7)).unwrap();
        assert_eq!((read.other, read.how), (Some(0), "another block wrote what this one reads"));
        assert_eq!(visits.write(0, 4, by(1, 7)).unwrap().how, "two blocks write");
        // A later launch comes after all of it.
        assert_eq!(visits.read(0, 8, by(2, 3)), None);
        assert_eq!(visits.read(0, 8, by(2, 3)), None);
        assert_eq!(visits.write(4, 4, by(2, 3)), None);
        assert_eq!(visits.write(0, 4, by(2, 4)).unwrap().other, Some(3));
    }

    #[test]
    fn many_readers_are_one_meeting() {
        let visits = Visits::new(4);
        for block in [2, 2, 3, 2] {
            assert_eq!(visits.read(0, 4, Caller { launch: 1, block }), None);
        }
        let write = visits.write(0, 4, Caller { launch: 1, block: 2 }).unwrap();
        assert_eq!((write.other, write.how), (None, "another block read what this one writes"));
    }
}
