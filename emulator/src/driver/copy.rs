//! Copies and fills.

use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

use super::control::ends;
use super::memory::is_pinned;
use super::{Code, DevicePointer, Driver, Handle, Needs, Status, call};
use crate::memory::{Allocation, uninitialized};

/// The allocation of a range of the device.
fn range<'a>(
    driver: &'a mut Driver,
    what: &'static str,
    address: u64,
    bytes: usize,
) -> Result<(&'a mut Allocation, usize), Code> {
    if driver.global.find(address, bytes).is_none() {
        let mistake = driver.global.out_of_bounds(what, address, bytes);
        driver.report(mistake.to_string());
        return Err(Code::InvalidValue);
    }
    driver.global.find_mut(address, bytes).ok_or(Code::InvalidValue)
}

/// What all copies and fills begin with; false where there is nothing to do.
fn begin(driver: &mut Driver, bytes: usize) -> Result<bool, Code> {
    driver.global.accounting_mut().copies += 1;
    if ends(&mut driver.settings.fail_copy) {
        driver.report(format!("a copy of {bytes} bytes fails, as was asked for"));
        return Err(Code::EccUncorrectable);
    }
    Ok(bytes > 0)
}

/// A copy of the host's plain memory may wait for all work before, even where it is asked for on a stream.
fn wait_unless_pinned(driver: &mut Driver, host: *const c_void) -> Result<(), Code> {
    match is_pinned(host) {
        true => {
            driver.busy = true;
            Ok(())
        }
        false => driver.wait(),
    }
}

/// # Safety
/// `from` points to `bytes` bytes.
unsafe fn to_device(driver: &mut Driver, to: DevicePointer, from: *const c_void, bytes: usize) -> Result<(), Code> {
    if begin(driver, bytes)? {
        if from.is_null() {
            return Err(Code::InvalidValue);
        }
        let (allocation, offset) = range(driver, "copy to the device", to, bytes)?;
        // SAFETY: as the caller promises.
        allocation.write(offset, unsafe { std::slice::from_raw_parts(from.cast(), bytes) });
    }
    Ok(())
}

/// # Safety
/// `to` points to `bytes` bytes.
unsafe fn to_host(driver: &mut Driver, to: *mut c_void, from: DevicePointer, bytes: usize) -> Result<(), Code> {
    if begin(driver, bytes)? {
        if to.is_null() {
            return Err(Code::InvalidValue);
        }
        let (allocation, offset) = range(driver, "copy to the host", from, bytes)?;
        if let Some(unwritten) = allocation.first_unwritten(offset, bytes) {
            let mistake = uninitialized(allocation, unwritten, bytes);
            driver.report(format!("copy to the host: {mistake}"));
            return Err(Code::IllegalAddress);
        }
        // SAFETY: as the caller promises.
        unsafe { std::ptr::copy_nonoverlapping(allocation.read(offset, bytes).as_ptr(), to.cast(), bytes) };
    }
    Ok(())
}

fn within(driver: &mut Driver, to: DevicePointer, from: DevicePointer, bytes: usize) -> Result<(), Code> {
    driver.busy = true;
    if begin(driver, bytes)? {
        let (from, offset) = range(driver, "copy from", from, bytes)?;
        let cut = from.cut(offset, bytes);
        let (to, offset) = range(driver, "copy to", to, bytes)?;
        to.paste(offset, &cut);
    }
    Ok(())
}

fn fill(driver: &mut Driver, to: DevicePointer, pattern: &[u8], count: usize) -> Result<(), Code> {
    let bytes = pattern.len().checked_mul(count).ok_or(Code::InvalidValue)?;
    driver.busy = true;
    if begin(driver, bytes)? {
        if !to.is_multiple_of(pattern.len() as u64) {
            return Err(Code::InvalidValue);
        }
        let (allocation, offset) = range(driver, "fill", to, bytes)?;
        allocation.fill(offset, pattern, count);
    }
    Ok(())
}

/// Host to device.
///
/// # Safety
/// `from` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: DevicePointer, from: *const c_void, bytes: usize) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |driver| unsafe {
        driver.wait()?;
        to_device(driver, to, from, bytes)
    })
}

/// Host to device, on a stream.
///
/// # Safety
/// `from` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: DevicePointer,
    from: *const c_void,
    bytes: usize,
    stream: Handle,
) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |driver| unsafe {
        driver.check_stream(stream)?;
        wait_unless_pinned(driver, from)?;
        to_device(driver, to, from, bytes)
    })
}

/// Device to host.
///
/// # Safety
/// `to` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: DevicePointer, bytes: usize) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |driver| unsafe {
        driver.wait()?;
        to_host(driver, to, from, bytes)
    })
}

/// Device to host, on a stream.
///
/// # Safety
/// `to` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: DevicePointer,
    bytes: usize,
    stream: Handle,
) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |driver| unsafe {
        driver.check_stream(stream)?;
        wait_unless_pinned(driver, to)?;
        to_host(driver, to, from, bytes)
    })
}

/// Device to device. What was never written stays so.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoD_v2(to: DevicePointer, from: DevicePointer, bytes: usize) -> Status {
    call(Needs::Context, |driver| within(driver, to, from, bytes))
}

/// Device to device, on a stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: DevicePointer, from: DevicePointer, bytes: usize, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        within(driver, to, from, bytes)
    })
}

/// Fills with a byte.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8_v2(to: DevicePointer, value: c_uchar, count: usize) -> Status {
    call(Needs::Context, |driver| fill(driver, to, &[value], count))
}

/// Fills with a byte, on a stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: DevicePointer, value: c_uchar, count: usize, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        fill(driver, to, &[value], count)
    })
}

/// Fills with two bytes.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD16_v2(to: DevicePointer, value: c_ushort, count: usize) -> Status {
    call(Needs::Context, |driver| fill(driver, to, &value.to_le_bytes(), count))
}

/// Fills with two bytes, on a stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD16Async(to: DevicePointer, value: c_ushort, count: usize, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        fill(driver, to, &value.to_le_bytes(), count)
    })
}

/// Fills with four bytes.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32_v2(to: DevicePointer, value: c_uint, count: usize) -> Status {
    call(Needs::Context, |driver| fill(driver, to, &value.to_le_bytes(), count))
}

/// Fills with four bytes, on a stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(to: DevicePointer, value: c_uint, count: usize, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        fill(driver, to, &value.to_le_bytes(), count)
    })
}
