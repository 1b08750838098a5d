//! Streams. Work is done when the call that asks for it returns, so that there is nothing to wait for but errors.

use std::ffi::{c_int, c_uint};

use super::{Code, Handle, Needs, Status, call, give};

/// Makes a stream.
///
/// # Safety
/// `stream` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, flags: c_uint) -> Status {
    call(Needs::Context, |driver| {
        if flags > 1 {
            return Err(Code::InvalidValue);
        }
        let number = driver.handle();
        // SAFETY: as the caller promises.
        unsafe { give(stream, number as Handle)? };
        driver.streams.insert(number);
        Ok(())
    })
}

/// Makes a stream; there is one priority.
///
/// # Safety
/// `stream` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, _priority: c_int) -> Status {
    // SAFETY: as the caller promises.
    unsafe { cuStreamCreate(stream, flags) }
}

/// Ends a stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Status {
    call(Needs::Context, |driver| match driver.streams.remove(&(stream as usize)) {
        true => Ok(()),
        false => Err(Code::InvalidHandle),
    })
}

/// Waits for the stream's work, which tells whether a kernel failed.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        driver.wait()
    })
}

/// Whether the stream's work is done: it is.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        driver.tell()
    })
}

/// The stream waits for an event, which has always happened.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        match driver.events.contains_key(&(event as usize)) {
            true => Ok(()),
            false => Err(Code::InvalidHandle),
        }
    })
}
