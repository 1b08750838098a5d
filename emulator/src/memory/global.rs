//! Global memory: the allocations, their limit and their accounts.

use super::allocation::ALIGNMENT;
use super::{Allocation, GLOBAL_START};
use crate::faults::Mistake;

/// The space left free after an allocation.
const GAP: u64 = 4096;

/// What was allocated, to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Accounting {
    /// Allocations made, by the synchronous call and by the asynchronous.
    pub allocations: u64,
    /// Those of them that the asynchronous call made, whose bytes a real driver does not account for exactly.
    pub pool_allocations: u64,
    /// Allocations given back.
    pub frees: u64,
    /// Bytes allocated now.
    pub live_bytes: u64,
    /// The most bytes that were allocated at once.
    pub peak_bytes: u64,
    /// Kernels launched.
    pub launches: u64,
    /// Copies between host and device, or within the device.
    pub copies: u64,
    /// Calls in which the host waits for whatever the device was given before: copies between host and device, but for
    /// asynchronous ones of pinned memory; synchronizations; memory given back, but to the pool.
    pub waits: u64,
    /// Those of them before which the device was given work that no call had waited for.
    pub waits_for_work: u64,
    /// Instructions that threads ran.
    pub instructions: u64,
}

/// An allocation that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

/// Global memory.
#[derive(Debug)]
pub struct Global {
    /// In the order of their addresses.
    allocations: Vec<Allocation>,
    next: u64,
    total: u64,
    accounting: Accounting,
}

impl Global {
    /// An empty memory of `total` bytes.
    pub fn new(total: u64) -> Global {
        Global { allocations: Vec::new(), next: GLOBAL_START + ALIGNMENT, total, accounting: Accounting::default() }
    }

    /// The bytes of the device.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Changes the bytes of the device. What is allocated stays.
    pub fn set_total(&mut self, total: u64) {
        self.total = total;
    }

    /// The bytes that are not allocated.
    pub fn free_bytes(&self) -> u64 {
        self.total.saturating_sub(self.accounting.live_bytes)
    }

    /// The accounts.
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// The accounts, for those who count launches and copies.
    pub fn accounting_mut(&mut self) -> &mut Accounting {
        &mut self.accounting
    }

    /// Allocates memory and gives its address. A module's variables are not in the accounts.
    pub fn allocate(&mut self, size: usize, of_module: bool) -> Result<u64, OutOfMemory> {
        let bytes = size as u64;
        if !of_module && bytes > self.free_bytes() {
            return Err(OutOfMemory);
        }
        let address = self.next;
        self.allocations.push(Allocation::new(address, size, of_module).ok_or(OutOfMemory)?);
        // An odd multiple of the alignment: no address is aligned better than promised.
        self.next = (address + bytes + GAP).next_multiple_of(2 * ALIGNMENT) + ALIGNMENT;
        if !of_module {
            let accounting = &mut self.accounting;
            accounting.allocations += 1;
            accounting.live_bytes += bytes;
            accounting.peak_bytes = accounting.peak_bytes.max(accounting.live_bytes);
        }
        Ok(address)
    }

    /// Gives an allocation back; false where none begins at the address.
    pub fn free(&mut self, address: u64) -> bool {
        let Ok(place) = self.allocations.binary_search_by_key(&address, Allocation::address) else { return false };
        let allocation = self.allocations.remove(place);
        if !allocation.of_module() {
            self.accounting.frees += 1;
            self.accounting.live_bytes -= allocation.size() as u64;
        }
        true
    }

    /// Gives everything back, as when the context ends. Freed addresses stay unused.
    pub fn clear(&mut self) {
        self.allocations.clear();
        self.accounting.live_bytes = 0;
    }

    /// The allocation that an access lies in, with its offset there.
    #[inline]
    pub fn find(&self, address: u64, size: usize) -> Option<(&Allocation, usize)> {
        let place = self.allocations.partition_point(|allocation| allocation.address() <= address);
        let allocation = self.allocations.get(place.checked_sub(1)?)?;
        Some((allocation, allocation.offset(address, size)?))
    }

    /// As `find`, for those who write many bytes.
    pub fn find_mut(&mut self, address: u64, size: usize) -> Option<(&mut Allocation, usize)> {
        let place = self.allocations.partition_point(|allocation| allocation.address() <= address);
        let allocation = self.allocations.get_mut(place.checked_sub(1)?)?;
        let offset = allocation.offset(address, size)?;
        Some((allocation, offset))
    }

    /// The mistake of an access that `find` does not find.
    pub fn out_of_bounds(&self, access: &'static str, address: u64, size: usize) -> Mistake {
        let place = self.allocations.partition_point(|allocation| allocation.address() <= address);
        let describe = |allocation: &Allocation| {
            format!("an allocation of {} bytes at {:#x}", allocation.size(), allocation.address())
        };
        let before = place.checked_sub(1).map(|place| &self.allocations[place]);
        let nearest = match (before, self.allocations.get(place)) {
            (Some(before), _) if address < before.address() + before.size() as u64 => {
                format!("it runs over the end of {}", describe(before))
            }
            (Some(before), after) => {
                let past = address - before.address() - before.size() as u64;
                match after {
                    Some(after) if after.address() - address < past => {
                        format!("{} bytes before {}", after.address() - address, describe(after))
                    }
                    _ => format!("{past} bytes past the end of {}", describe(before)),
                }
            }
            (None, Some(after)) => format!("{} bytes before {}", after.address() - address, describe(after)),
            (None, None) => "nothing is allocated".to_owned(),
        };
        Mistake::OutOfBounds { space: "global", access, address, size, nearest }
    }
}

/// The mistake of reading a byte that was never written.
pub fn uninitialized(allocation: &Allocation, offset: usize, size: usize) -> Mistake {
    let within =
        format!("byte {offset} of an allocation of {} bytes at {:#x}", allocation.size(), allocation.address());
    Mistake::Uninitialized { space: "global", address: allocation.address() + offset as u64, size, within }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_exact() {
        let mut memory = Global::new(1000);
        let a = memory.allocate(600, false).unwrap();
        assert_eq!(memory.allocate(401, false), Err(OutOfMemory));
        let b = memory.allocate(400, false).unwrap();
        memory.allocate(5000, true).unwrap();
        assert_eq!(memory.free_bytes(), 0);
        assert!(memory.free(a));
        assert!(!memory.free(a) && !memory.free(b + 1));
        let accounting = memory.accounting();
        assert_eq!((accounting.allocations, accounting.frees), (2, 1));
        assert_eq!((accounting.live_bytes, accounting.peak_bytes), (400, 1000));
    }

    #[test]
    fn addresses_are_aligned_as_promised_and_no_better() {
        let mut memory = Global::new(1 << 20);
        memory.allocate(1, false).unwrap();
        let mut end = 0;
        for size in [1, 255, 256, 4097] {
            let address = memory.allocate(size, false).unwrap();
            assert_eq!(address % 512, 256);
            assert!(address >= end + 4096, "an access a page past an end meets nothing");
            end = address + size as u64;
        }
    }

    #[test]
    fn a_freed_address_is_never_used_again() {
        let mut memory = Global::new(1 << 20);
        let a = memory.allocate(64, false).unwrap();
        memory.free(a);
        assert_ne!(memory.allocate(64, false).unwrap(), a);
        assert!(memory.find(a, 1).is_none());
    }

    #[test]
    fn an_access_outside_names_what_is_near() {
        let mut memory = Global::new(1 << 20);
        let text = |memory: &Global, address, size| memory.out_of_bounds("load", address, size).to_string();
        assert!(text(&memory, 0, 4).ends_with("nothing is allocated"));
        let a = memory.allocate(64, false).unwrap();
        assert!(text(&memory, 0, 4).contains("bytes before an allocation of 64 bytes"));
        assert!(text(&memory, a + 62, 4).contains("it runs over the end of an allocation of 64 bytes"));
        assert!(text(&memory, a + 68, 4).contains("4 bytes past the end of an allocation of 64 bytes"));
    }
}
