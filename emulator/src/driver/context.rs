//! The primary context, which all share. Retained for the first time it begins; released for the last time it ends, with all that it
//! holds.

use std::ffi::{c_int, c_uint};

use super::state::{current, set_current};
use super::{Code, Device, Handle, Needs, Status, call, give};

/// Takes a share in the context.
///
/// # Safety
/// `context` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: Device) -> Status {
    call(Needs::Init, |driver| {
        if device != 0 {
            return Err(Code::InvalidDevice);
        }
        let number = match driver.context {
            Some(number) => number,
            None => driver.handle(),
        };
        // SAFETY: as the caller promises.
        unsafe { give(context, number as Handle)? };
        driver.context = Some(number);
        driver.retained += 1;
        Ok(())
    })
}

/// Gives a share in the context back.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: Device) -> Status {
    call(Needs::Init, |driver| {
        if device != 0 {
            return Err(Code::InvalidDevice);
        }
        match driver.retained {
            0 => return Err(Code::InvalidContext),
            1 => driver.end_context(),
            _ => driver.retained -= 1,
        }
        Ok(())
    })
}

/// Ends the context for all who have a share in it.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(device: Device) -> Status {
    call(Needs::Init, |driver| {
        if device != 0 {
            return Err(Code::InvalidDevice);
        }
        driver.end_context();
        Ok(())
    })
}

/// The thread's context.
///
/// # Safety
/// `context` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut Handle) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Init, |driver| unsafe {
        let live = driver.context.filter(|context| *context == current());
        give(context, live.unwrap_or(0) as Handle)
    })
}

/// Changes the thread's context.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> Status {
    call(Needs::Init, |driver| {
        let context = context as usize;
        if context != 0 && driver.context != Some(context) {
            return Err(Code::InvalidContext);
        }
        set_current(context);
        Ok(())
    })
}

/// The device of the thread's context.
///
/// # Safety
/// `device` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut Device) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Context, |_| unsafe { give(device, 0) })
}

/// Waits for all work, which tells whether a kernel failed.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Status {
    call(Needs::Context, |driver| driver.wait())
}

/// How the thread waits, which makes no difference here.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetFlags(_flags: c_uint) -> Status {
    call(Needs::Context, |_| Ok(()))
}

/// The priorities that streams may have: one.
///
/// # Safety
/// Each is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Status {
    call(Needs::Context, |_| {
        // SAFETY: as the caller promises.
        unsafe {
            give(least, 0)?;
            give(greatest, 0)
        }
    })
}
