//! A card: its context, its stream, and errors in words that name both the card and what was being done.

use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
};
use sys::CUresult::CUDA_ERROR_NO_DEVICE;

use crate::error::Error;

/// The version of CUDA whose PTX the kernels are written in, as the driver counts: 12.1.
const LEAST_DRIVER: i32 = 12010;

/// The compute capability that the kernels are compiled for: Turing.
const LEAST_CAPABILITY: (i32, i32) = (7, 5);

/// A card with its primary context and one stream. All of its owners share them; the last one gives them back.
pub struct Card {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// In messages: "CUDA device 0 (NVIDIA H200)".
    name: String,
}

// SAFETY: the driver may be called from any thread, which makes the context its current one first: see `bind`.
unsafe impl Send for Card {}
// SAFETY: as above, and from several at once.
unsafe impl Sync for Card {}

impl Card {
    /// The card of that number.
    pub fn new(ordinal: usize) -> Result<Arc<Card>, Error> {
        let absent = |problem: String| Error::NoCuda { problem };
        // SAFETY: only looks whether a library can be loaded. Without one, every other call would panic.
        if !unsafe { sys::is_culib_present() } {
            return Err(absent("there is no driver: libcuda is not installed".to_string()));
        }
        let failed = |doing: &str, error| device_error(&format!("CUDA device {ordinal}"), doing, error);
        match result::init() {
            Err(DriverError(CUDA_ERROR_NO_DEVICE)) => return Err(absent("the driver finds no card".to_string())),
            other => other.map_err(|error| failed("starting the driver", error))?,
        }
        let mut driver = 0;
        // SAFETY: writes one number.
        let asked = unsafe { sys::cuDriverGetVersion(&mut driver) }.result();
        asked.map_err(|error| failed("asking for the driver's version", error))?;
        if driver < LEAST_DRIVER {
            return Err(Error::OldDriver { driver: version(driver), needed: version(LEAST_DRIVER) });
        }
        let count = result::device::get_count().map_err(|error| failed("counting the cards", error))?;
        if count == 0 {
            return Err(absent("the driver finds no card".to_string()));
        }
        if ordinal >= count.max(0) as usize {
            return Err(absent(format!("there is no card number {ordinal}: they count from 0, and there are {count}")));
        }
        let device = result::device::get(ordinal as i32).map_err(|error| failed("opening the card", error))?;
        let name = result::device::get_name(device).map_err(|error| failed("asking for the card's name", error))?;
        let name = format!("CUDA device {ordinal} ({name})");
        // SAFETY: the device is one that the driver has just given.
        let attribute = |which| unsafe { result::device::get_attribute(device, which) };
        let capability = attribute(MAJOR).and_then(|major| Ok((major, attribute(MINOR)?)));
        let capability = capability.map_err(|error| device_error(&name, "asking for the compute capability", error))?;
        if capability < LEAST_CAPABILITY {
            return Err(Error::OldCard {
                device: name,
                capability: format!("{}.{}", capability.0, capability.1),
                needed: format!("{}.{}", LEAST_CAPABILITY.0, LEAST_CAPABILITY.1),
            });
        }
        // SAFETY: as above; `drop` releases it.
        let context = unsafe { result::primary_ctx::retain(device) };
        let context = context.map_err(|error| device_error(&name, "making a context", error))?;
        let mut card = Card { device, context, stream: std::ptr::null_mut(), name };
        card.bind()?;
        // Copies that the host waits for come after all that this stream has been given, and before all that follows.
        let stream = result::stream::create(result::stream::StreamKind::Default);
        card.stream = stream.map_err(|error| card.error("making a stream", error))?;
        Ok(Arc::new(card))
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stream on which all work is done in order.
    pub fn stream(&self) -> sys::CUstream {
        self.stream
    }

    /// Makes the context this thread's current one, which every call of the driver needs.
    pub fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context lives as long as the card.
        unsafe { result::ctx::set_current(self.context) }.map_err(|error| self.error("taking up the context", error))
    }

    /// Free bytes, and all bytes.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        let memory = result::mem_get_info().map_err(|error| self.error("asking for free memory", error))?;
        Ok((memory.0 as u64, memory.1 as u64))
    }

    /// A failure of the driver while it was `doing` something.
    pub fn error(&self, doing: &str, error: DriverError) -> Error {
        device_error(&self.name, doing, error)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // What fails here has failed before, and was reported then.
        if self.bind().is_ok() && !self.stream.is_null() {
            // SAFETY: nobody else has the stream.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
        // SAFETY: retained once, in `new`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

fn device_error(device: &str, doing: &str, error: DriverError) -> Error {
    let said = error.error_string().map(CStr::to_string_lossy);
    let said = said.map_or(String::new(), |said| format!(": {said}"));
    Error::Device { device: device.to_string(), message: format!("{doing}: {:?}{said}", error.0) }
}

/// As the driver counts versions: 12010 is 12.1.
fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}
