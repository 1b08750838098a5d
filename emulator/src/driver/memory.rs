//! Allocation.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ffi::{c_uint, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::control::ends;
use super::{Code, DevicePointer, Driver, Handle, Needs, Status, call, give};

fn allocate(driver: &mut Driver, bytes: usize) -> Result<DevicePointer, Code> {
    if bytes == 0 {
        return Err(Code::InvalidValue);
    }
    if ends(&mut driver.settings.fail_allocation) {
        driver.report(format!("an allocation of {bytes} bytes fails, as was asked for"));
        return Err(Code::OutOfMemory);
    }
    driver.global.allocate(bytes, false).map_err(|_| {
        let (free, total) = (driver.global.free_bytes(), driver.global.total());
        driver.report(format!("an allocation of {bytes} bytes does not fit: {free} of {total} are free"));
        Code::OutOfMemory
    })
}

fn free(driver: &mut Driver, address: DevicePointer) -> Result<(), Code> {
    match driver.global.free(address) {
        true => Ok(()),
        false => {
            driver.report(format!("nothing is allocated at {address:#x}, which is to be freed"));
            Err(Code::InvalidValue)
        }
    }
}

/// Allocates memory.
///
/// # Safety
/// `address` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut DevicePointer, bytes: usize) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |driver| unsafe { give(address, allocate(driver, bytes)?) })
}

/// Gives memory back, once the work that may use it is done.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: DevicePointer) -> Status {
    call(Needs::Context, |driver| {
        driver.wait()?;
        free(driver, address)
    })
}

/// Allocates memory from the pool, whose bytes a real driver does not account for exactly.
///
/// # Safety
/// `address` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut DevicePointer, bytes: usize, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        let found = allocate(driver, bytes)?;
        driver.global.accounting_mut().pool_allocations += 1;
        // SAFETY: as the caller promises.
        unsafe { give(address, found) }
    })
}

/// Gives memory back to the pool.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: DevicePointer, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        free(driver, address)
    })
}

/// Sizes of the host's allocations by their addresses.
static HOST: LazyLock<Mutex<HashMap<usize, Layout>>> = LazyLock::new(Mutex::default);

/// Whether memory of the host is such that the device copies it while the host goes on.
pub(super) fn is_pinned(memory: *const c_void) -> bool {
    let host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    host.iter().any(|(start, layout)| (memory as usize).wrapping_sub(*start) < layout.size())
}

/// Allocates memory of the host that the device can copy fast.
///
/// # Safety
/// `memory` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, _flags: c_uint) -> Status {
    call(Needs::Context, |_| {
        let layout = Layout::from_size_align(bytes, 4096).map_err(|_| Code::InvalidValue)?;
        if bytes == 0 {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the size is not zero.
        let found = unsafe { alloc_zeroed(layout) };
        if found.is_null() {
            return Err(Code::OutOfMemory);
        }
        HOST.lock().unwrap_or_else(PoisonError::into_inner).insert(found as usize, layout);
        // SAFETY: as the caller promises.
        unsafe { give(memory, found.cast()) }
    })
}

/// Gives memory of the host back.
///
/// # Safety
/// Nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(memory: *mut c_void) -> Status {
    call(Needs::Context, |_| {
        let layout = HOST.lock().unwrap_or_else(PoisonError::into_inner).remove(&(memory as usize));
        // SAFETY: `cuMemHostAlloc` allocated it with this layout.
        layout.map(|layout| unsafe { dealloc(memory.cast(), layout) }).ok_or(Code::InvalidValue)
    })
}
