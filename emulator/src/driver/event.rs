//! Events: moments between the work of a stream.

use std::ffi::c_uint;
use std::time::Instant;

use super::{Code, Driver, Handle, Needs, Status, call, give};

fn moment(driver: &Driver, event: Handle) -> Result<Option<Instant>, Code> {
    driver.events.get(&(event as usize)).copied().ok_or(Code::InvalidHandle)
}

/// Makes an event.
///
/// # Safety
/// `event` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut Handle, _flags: c_uint) -> Status {
    call(Needs::Context, |driver| {
        let number = driver.handle();
        // SAFETY: as the caller promises.
        unsafe { give(event, number as Handle)? };
        driver.events.insert(number, None);
        Ok(())
    })
}

/// Ends an event.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: Handle) -> Status {
    call(Needs::Context, |driver| match driver.events.remove(&(event as usize)) {
        Some(_) => Ok(()),
        None => Err(Code::InvalidHandle),
    })
}

/// Now is the event's moment.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        *driver.events.get_mut(&(event as usize)).ok_or(Code::InvalidHandle)? = Some(Instant::now());
        Ok(())
    })
}

/// Whether the event has happened: one that was recorded has.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Status {
    call(Needs::Context, |driver| {
        moment(driver, event)?;
        driver.tell()
    })
}

/// Waits for the event.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Status {
    call(Needs::Context, |driver| {
        moment(driver, event)?;
        driver.wait()
    })
}

/// Milliseconds of this machine between two events; they say nothing of a GPU.
///
/// # Safety
/// `milliseconds` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> Status {
    call(Needs::Context, |driver| match (moment(driver, start)?, moment(driver, end)?) {
        // SAFETY: as the caller promises.
        (Some(start), Some(end)) => unsafe { give(milliseconds, end.duration_since(start).as_secs_f32() * 1e3) },
        _ => Err(Code::InvalidHandle),
    })
}
