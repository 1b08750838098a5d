//! Shared memory of a block, which also finds races: two threads that touch the same word between two barriers, at least one of them
//! writing. Accesses of one or two bytes, and atomic ones, take no part in that.

use crate::faults::Mistake;
use crate::machine::{Lanes, lanes};

/// Who makes an access.
#[derive(Debug, Clone, Copy)]
pub struct Visitor {
    /// The thread's number in the block.
    pub thread: u16,
    /// How many barriers of its own the thread's warp has passed.
    pub warp_phase: u16,
}

/// The last access of a kind to a word, packed: the block's phase, the warp's phase, and who.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Visit(u64);

/// Set in `who` when several threads of the warp came.
const SEVERAL_IN_WARP: u16 = 0x4000;
/// Set in `who` when threads of several warps came.
const SEVERAL: u16 = 0x8000;

impl Visit {
    #[inline(always)]
    fn new(phase: u32, visitor: Visitor) -> Visit {
        Visit(u64::from(phase) << 32 | u64::from(visitor.warp_phase) << 16 | u64::from(visitor.thread))
    }

    #[inline(always)]
    fn who(self) -> u16 {
        self.0 as u16
    }

    /// Whether nothing orders this visit before one that `visitor` makes now.
    #[inline(always)]
    fn unordered(self, phase: u32, visitor: Visitor) -> bool {
        if (self.0 >> 32) as u32 != phase || self.who() == visitor.thread {
            return false;
        }
        let same_warp = self.who() & SEVERAL == 0 && (self.who() & !SEVERAL_IN_WARP) / 32 == visitor.thread / 32;
        !same_warp || (self.0 >> 16) as u16 == visitor.warp_phase
    }

    /// Becomes this visit, and one more.
    #[inline(always)]
    fn add(&mut self, phase: u32, visitor: Visitor) {
        if (self.0 >> 32) as u32 != phase {
            *self = Visit::new(phase, visitor);
        } else if self.who() & SEVERAL == 0 && self.who() != visitor.thread {
            self.add_another(phase, visitor);
        }
    }

    fn add_another(&mut self, phase: u32, visitor: Visitor) {
        let of_warp = (self.who() & !SEVERAL_IN_WARP) / 32 == visitor.thread / 32;
        if !self.unordered(phase, visitor) {
            *self = Visit::new(phase, visitor);
        } else {
            self.0 |= u64::from(if of_warp { SEVERAL_IN_WARP } else { SEVERAL });
        }
    }

    fn single(self) -> Option<u32> {
        (self.who() & (SEVERAL | SEVERAL_IN_WARP) == 0).then_some(self.who().into())
    }
}

/// The marks of eight written bytes.
const ALL_WRITTEN: u64 = 0x0101_0101_0101_0101;

/// The shared memory of a block.
#[derive(Debug, Default)]
pub struct Shared {
    bytes: Vec<u8>,
    written: Vec<u8>,
    writers: Vec<Visit>,
    readers: Vec<Visit>,
    /// Rises at each barrier of the block.
    phase: u32,
}

impl Shared {
    /// Memory of `size` bytes.
    pub fn new(size: usize) -> Shared {
        let words = size.div_ceil(4);
        Shared {
            bytes: vec![0; size],
            written: vec![0; size],
            writers: vec![Visit::default(); words],
            readers: vec![Visit::default(); words],
            phase: 1,
        }
    }

    /// Forgets everything, for the next block.
    pub fn clear(&mut self) {
        self.written.fill(0);
        self.barrier();
    }

    /// All threads of the block met: what was before is ordered before what comes.
    pub fn barrier(&mut self) {
        self.phase += 1;
    }

    /// Reads 1, 2, 4 or 8 bytes for each thread of a warp in the mask; `visitor` is the warp's first. False where something is wrong,
    /// which `load` tells, a thread at a time.
    #[inline(always)]
    pub fn load_row<const SIZE: usize>(
        &mut self,
        visitor: Visitor,
        mask: u32,
        addresses: &Lanes<u64>,
        row: &mut Lanes<u64>,
    ) -> bool {
        let Shared { bytes, written, writers, readers, phase } = self;
        let phase = *phase;
        for lane in lanes(mask) {
            let at = addresses[lane] as usize;
            let visitor = Visitor { thread: visitor.thread + lane as u16, ..visitor };
            let Some(marks) = at.checked_add(SIZE).and_then(|end| written.get(at..end)) else { return false };
            if !at.is_multiple_of(SIZE) || get::<SIZE>(marks) != ALL_WRITTEN >> (64 - 8 * SIZE) {
                return false;
            }
            if SIZE >= 4 {
                for (writer, reader) in writers[at / 4..].iter().zip(&mut readers[at / 4..]).take(SIZE / 4) {
                    if writer.unordered(phase, visitor) {
                        return false;
                    }
                    reader.add(phase, visitor);
                }
            }
            row[lane] = get::<SIZE>(&bytes[at..at + SIZE]);
        }
        true
    }

    /// Reads 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn load<const SIZE: usize>(&mut self, visitor: Visitor, address: u64) -> Result<u64, Mistake> {
        let at = self.place::<SIZE>("load", address)?;
        if !all_written::<SIZE>(&self.written[at..at + SIZE]) {
            return Err(self.uninitialized(at, SIZE));
        }
        if SIZE >= 4 {
            for word in at / 4..(at + SIZE) / 4 {
                let writer = self.writers[word];
                if writer.unordered(self.phase, visitor) {
                    return Err(race(word, writer, "another thread wrote what this one reads"));
                }
                self.readers[word].add(self.phase, visitor);
            }
        }
        Ok(get::<SIZE>(&self.bytes[at..at + SIZE]))
    }

    /// Writes 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn store<const SIZE: usize>(&mut self, visitor: Visitor, address: u64, value: u64) -> Result<(), Mistake> {
        let at = self.place::<SIZE>("store", address)?;
        if SIZE >= 4 {
            // Threads that write the same value do no harm.
            let same = get::<SIZE>(&self.bytes[at..at + SIZE]) == value & (u64::MAX >> (64 - 8 * SIZE));
            for word in at / 4..(at + SIZE) / 4 {
                let (writer, reader) = (self.writers[word], self.readers[word]);
                if !same && writer.unordered(self.phase, visitor) {
                    return Err(race(word, writer, "two threads write"));
                }
                if !same && reader.unordered(self.phase, visitor) {
                    return Err(race(word, reader, "another thread read what this one writes"));
                }
                self.writers[word] = Visit::new(self.phase, visitor);
            }
        }
        self.bytes[at..at + SIZE].copy_from_slice(&value.to_le_bytes()[..SIZE]);
        self.written[at..at + SIZE].fill(1);
        Ok(())
    }

    /// Replaces 4 or 8 bytes by a function of them, and gives what was there.
    pub fn update<const SIZE: usize>(&mut self, address: u64, f: impl Fn(u64) -> u64) -> Result<u64, Mistake> {
        let at = self.place::<SIZE>("atomic", address)?;
        if !all_written::<SIZE>(&self.written[at..at + SIZE]) {
            return Err(self.uninitialized(at, SIZE));
        }
        let old = get::<SIZE>(&self.bytes[at..at + SIZE]);
        self.bytes[at..at + SIZE].copy_from_slice(&f(old).to_le_bytes()[..SIZE]);
        Ok(old)
    }

    #[inline(always)]
    fn place<const SIZE: usize>(&self, access: &'static str, address: u64) -> Result<usize, Mistake> {
        if address.checked_add(SIZE as u64).is_none_or(|end| end > self.bytes.len() as u64) {
            let nearest = format!("the block has {} bytes", self.bytes.len());
            return Err(Mistake::OutOfBounds { space: "shared", access, address, size: SIZE, nearest });
        }
        if !address.is_multiple_of(SIZE as u64) {
            return Err(Mistake::Misaligned { space: "shared", access, address, size: SIZE });
        }
        Ok(address as usize)
    }

    fn uninitialized(&self, at: usize, size: usize) -> Mistake {
        let within = format!("byte {at} of the {} that the block has", self.bytes.len());
        Mistake::Uninitialized { space: "shared", address: at as u64, size, within }
    }
}

#[inline(always)]
fn all_written<const SIZE: usize>(marks: &[u8]) -> bool {
    get::<SIZE>(marks) == ALL_WRITTEN >> (64 - 8 * SIZE)
}

#[inline(always)]
fn get<const SIZE: usize>(bytes: &[u8]) -> u64 {
    let mut value = [0; 8];
    value[..SIZE].copy_from_slice(&bytes[..SIZE]);
    u64::from_le_bytes(value)
}

fn race(word: usize, other: Visit, how: &'static str) -> Mistake {
    Mistake::Race { address: word as u64 * 4, other: other.single(), how }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(thread: u16, warp_phase: u16) -> Visitor {
        Visitor { thread, warp_phase }
    }

    fn is_race<T>(result: Result<T, Mistake>) -> bool {
        matches!(result, Err(Mistake::Race { .. }))
    }

    #[test]
    fn accesses_are_checked_to_the_byte() {
        let mut shared = Shared::new(10);
        shared.store::<4>(by(0, 0), 4, 0x0102_0304).unwrap();
        assert_eq!(shared.load::<2>(by(0, 0), 6), Ok(0x0102));
        assert!(matches!(shared.load::<4>(by(0, 0), 8), Err(Mistake::OutOfBounds { .. })));
        assert!(matches!(shared.load::<2>(by(0, 0), 8), Err(Mistake::Uninitialized { .. })));
        assert!(matches!(shared.load::<4>(by(0, 0), 2), Err(Mistake::Misaligned { .. })));
        assert!(matches!(shared.store::<8>(by(0, 0), u64::MAX - 3, 0), Err(Mistake::OutOfBounds { .. })));
        assert_eq!(shared.update::<4>(4, |old| old + 1), Ok(0x0102_0304));
        shared.clear();
        assert!(matches!(shared.load::<4>(by(0, 0), 4), Err(Mistake::Uninitialized { .. })));
    }

    #[test]
    fn a_barrier_orders_a_write_before_a_read() {
        let mut shared = Shared::new(8);
        shared.store::<4>(by(0, 0), 0, 1).unwrap();
        assert!(shared.load::<4>(by(0, 0), 0).is_ok());
        assert!(is_race(shared.load::<4>(by(1, 0), 0)));
        shared.barrier();
        assert!(shared.load::<4>(by(1, 0), 0).is_ok());
        assert!(is_race(shared.store::<4>(by(0, 0), 0, 2)));
        shared.barrier();
        assert!(shared.store::<4>(by(0, 0), 0, 2).is_ok());
    }

    #[test]
    fn a_barrier_of_the_warp_orders_its_own_threads_only() {
        let mut shared = Shared::new(8);
        shared.store::<4>(by(0, 0), 0, 1).unwrap();
        assert!(is_race(shared.load::<4>(by(31, 0), 0)));
        assert!(shared.load::<4>(by(31, 1), 0).is_ok());
        assert!(is_race(shared.load::<4>(by(32, 1), 0)));
        assert!(is_race(shared.store::<4>(by(0, 1), 0, 3)));
        assert!(shared.store::<4>(by(0, 2), 0, 3).is_ok());
    }

    #[test]
    fn many_readers_are_one_race_and_equal_writes_none() {
        let mut shared = Shared::new(8);
        shared.store::<4>(by(0, 0), 0, 1).unwrap();
        shared.barrier();
        for thread in [0, 1, 40] {
            shared.load::<4>(by(thread, 0), 0).unwrap();
        }
        assert!(shared.store::<4>(by(5, 0), 0, 1).is_ok());
        assert_eq!(
            shared.store::<4>(by(0, 0), 0, 2),
            Err(Mistake::Race { address: 0, other: Some(5), how: "two threads write" })
        );
    }
}
