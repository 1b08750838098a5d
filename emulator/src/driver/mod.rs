//! The functions of the CUDA driver, by the names and with the numbers of `cuda.h`.
//!
//! Every call locks the one device, so that calls from several threads run one after another. Work on a stream is done when the call
//! returns, except that a kernel's fault is told by a later call, as a GPU does.

mod code;
mod context;
mod control;
mod copy;
mod device;
mod errors;
mod event;
mod gemm;
mod launch;
mod memory;
mod module;
mod state;
mod stream;

pub use code::Code;
pub use control::Settings;
pub use state::Driver;

use std::ffi::{c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a driver function returns: `CUresult`.
type Status = c_uint;
/// An address on the device: `CUdeviceptr`.
type DevicePointer = u64;
/// `CUcontext`, `CUmodule`, `CUfunction`, `CUstream` and `CUevent`: numbers that only the driver understands.
type Handle = *mut c_void;
/// `CUdevice`.
type Device = c_int;

/// What must hold before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing.
    Nothing,
    /// `cuInit` was called.
    Init,
    /// The thread has a context, which has no error from before.
    Context,
}

/// Runs a call on the driver's state. A panic inside becomes an error: it must not cross into the caller.
fn call(needs: Needs, body: impl FnOnce(&mut Driver) -> Result<(), Code>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut driver = state::lock();
        driver.check(needs)?;
        body(&mut driver)
    }));
    match result {
        Ok(Ok(())) => Code::Success as Status,
        Ok(Err(code)) => code as Status,
        Err(_) => {
            state::lock().report("the emulator itself panicked: see the panic's message");
            Code::Unknown as Status
        }
    }
}

/// Hands a value to the caller.
///
/// # Safety
/// `to` is null or points to room for a `T`.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe { to.write(value) };
    Ok(())
}
