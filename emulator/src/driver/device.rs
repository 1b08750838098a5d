//! The device: there is one, or none. It has the limits of compute capability 7.5, the oldest that
//! the kernels are for, whatever capability it is said to have.

use std::ffi::{c_char, c_int, c_uint};

use super::{Code, Device, Needs, Status, call, give};

/// Bytes of shared memory that a block may have without asking.
pub(super) const SHARED: u32 = 48 << 10;
/// Bytes of shared memory that a block may have when the function asks for them.
pub(super) const SHARED_OPT_IN: u32 = 64 << 10;

const NAME: &[u8] = b"Plimsoll emulator\0";

fn check(device: Device) -> Result<(), Code> {
    if device == 0 { Ok(()) } else { Err(Code::InvalidDevice) }
}

/// Prepares the driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Status {
    call(Needs::Nothing, |driver| {
        if flags != 0 {
            return Err(Code::InvalidValue);
        }
        if driver.settings.devices == 0 {
            return Err(Code::NoDevice);
        }
        driver.initialized = true;
        Ok(())
    })
}

/// The driver's version.
///
/// # Safety
/// `version` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Nothing, |driver| unsafe { give(version, driver.settings.version) })
}

/// The device with a number.
///
/// # Safety
/// `device` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut Device, ordinal: c_int) -> Status {
    call(Needs::Init, |driver| {
        if ordinal < 0 || ordinal as u32 >= driver.settings.devices {
            return Err(Code::InvalidDevice);
        }
        // SAFETY: as the caller promises.
        unsafe { give(device, ordinal) }
    })
}

/// How many devices there are.
///
/// # Safety
/// `count` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Init, |driver| unsafe { give(count, driver.settings.devices as c_int) })
}

/// The device's name.
///
/// # Safety
/// `name` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: Device) -> Status {
    call(Needs::Init, |_| {
        check(device)?;
        if name.is_null() || (length as usize) < NAME.len() || length < 0 {
            return Err(Code::InvalidValue);
        }
        // SAFETY: the caller promises room, and there is enough.
        unsafe { std::ptr::copy_nonoverlapping(NAME.as_ptr().cast(), name, NAME.len()) };
        Ok(())
    })
}

/// The device's number in the world.
///
/// # Safety
/// `uuid` is null or points to 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: Device) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Init, |_| check(device).and_then(|()| unsafe { give(uuid, *b"PlimsollEmulator") }))
}

/// The same by its old name.
///
/// # Safety
/// `uuid` is null or points to 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: Device) -> Status {
    // SAFETY: as the caller promises.
    unsafe { cuDeviceGetUuid_v2(uuid, device) }
}

/// The device's bytes.
///
/// # Safety
/// `bytes` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: Device) -> Status {
    // SAFETY: as the caller promises.
    call(Needs::Init, |driver| check(device).and_then(|()| unsafe { give(bytes, driver.global.total() as usize) }))
}

/// A property of the device.
///
/// # Safety
/// `value` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: Device) -> Status {
    call(Needs::Init, |driver| {
        check(device)?;
        let found = attribute_value(attribute, driver.settings.capability as c_int).ok_or(Code::InvalidValue)?;
        // SAFETY: as the caller promises.
        unsafe { give(value, found) }
    })
}

/// The numbers are those of `CUdevice_attribute`.
fn attribute_value(attribute: c_uint, capability: c_int) -> Option<c_int> {
    Some(match attribute {
        1 => 1024,                    // MAX_THREADS_PER_BLOCK
        2 | 3 => 1024,                // MAX_BLOCK_DIM_X, _Y
        4 => 64,                      // MAX_BLOCK_DIM_Z
        5 => i32::MAX,                // MAX_GRID_DIM_X
        6 | 7 => 65535,               // MAX_GRID_DIM_Y, _Z
        8 => SHARED as c_int,         // MAX_SHARED_MEMORY_PER_BLOCK
        9 => 64 << 10,                // TOTAL_CONSTANT_MEMORY
        10 => 32,                     // WARP_SIZE
        12 => 64 << 10,               // MAX_REGISTERS_PER_BLOCK
        13 => 1_000_000,              // CLOCK_RATE
        15 => 1,                      // GPU_OVERLAP
        16 => 16,                     // MULTIPROCESSOR_COUNT
        17 | 18 => 0,                 // KERNEL_EXEC_TIMEOUT, INTEGRATED
        31 => 1,                      // CONCURRENT_KERNELS
        32 => 0,                      // ECC_ENABLED
        36 => 1_000_000,              // MEMORY_CLOCK_RATE
        37 => 256,                    // GLOBAL_MEMORY_BUS_WIDTH
        38 => 4 << 20,                // L2_CACHE_SIZE
        39 => 1024,                   // MAX_THREADS_PER_MULTIPROCESSOR
        41 => 1,                      // UNIFIED_ADDRESSING
        75 => capability / 10,        // COMPUTE_CAPABILITY_MAJOR
        76 => capability % 10,        // COMPUTE_CAPABILITY_MINOR
        81 => 64 << 10,               // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        82 => 64 << 10,               // MAX_REGISTERS_PER_MULTIPROCESSOR
        83 | 95 => 0,                 // MANAGED_MEMORY, COOPERATIVE_LAUNCH
        97 => SHARED_OPT_IN as c_int, // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        115 => 1,                     // MEMORY_POOLS_SUPPORTED
        _ => return None,
    })
}

/// Free and total bytes. They are exact, as a real driver's are only to its granule.
///
/// # Safety
/// Each is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        unsafe {
            give(free, driver.global.free_bytes() as usize)?;
            give(total, driver.global.total() as usize)
        }
    })
}
