//! What a test sets and reads: functions of the library by the name `emulator_...`, and environment variables for programs that can't
//! call them.

use std::ffi::{c_char, c_int};

use super::state::lock;
use crate::memory::Accounting;

/// How the device behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Its bytes.
    pub memory: u64,
    /// How many devices there are: one, or none.
    pub devices: u32,
    /// The driver's version: 12040 is 12.4.
    pub version: i32,
    /// The compute capability: 75 is 7.5.
    pub capability: u32,
    /// Whether the device is lost.
    pub lost: bool,
    /// Whether the last thread of a block goes first, and the last block.
    pub reversed: bool,
    /// Whether races between the blocks of a launch are looked for.
    pub races: bool,
    /// The most instructions of a warp in a launch.
    pub instruction_limit: u64,
    /// Whether reports are printed.
    pub verbose: bool,
    /// After how many more the allocation fails; then once.
    pub fail_allocation: Option<u64>,
    /// After how many more the copy fails; then once.
    pub fail_copy: Option<u64>,
    /// After how many more the launch fails; then once.
    pub fail_launch: Option<u64>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            memory: 8 << 30,
            devices: 1,
            version: 12040,
            capability: 75,
            lost: false,
            reversed: false,
            races: false,
            instruction_limit: 1 << 32,
            verbose: false,
            fail_allocation: None,
            fail_copy: None,
            fail_launch: None,
        }
    }
}

impl Settings {
    /// The defaults, changed by `PLIMSOLL_EMULATOR_MEMORY`, `_DEVICES`, `_DRIVER_VERSION`, `_CAPABILITY`, `_LOST`, `_REVERSED`, `_RACES`,
    /// `_VERBOSE`, `_FAIL_ALLOCATION`, `_FAIL_COPY` and `_FAIL_LAUNCH`, each a number.
    pub fn from_environment() -> Settings {
        let read = |name: &str| -> Option<u64> {
            std::env::var(format!("PLIMSOLL_EMULATOR_{name}")).ok()?.trim().parse().ok()
        };
        let default = Settings::default();
        Settings {
            memory: read("MEMORY").unwrap_or(default.memory),
            devices: read("DEVICES").map_or(default.devices, |devices| devices.min(1) as u32),
            version: read("DRIVER_VERSION").map_or(default.version, |version| version as i32),
            capability: read("CAPABILITY").map_or(default.capability, |capability| capability as u32),
            lost: read("LOST").is_some_and(|lost| lost != 0),
            reversed: read("REVERSED").is_some_and(|reversed| reversed != 0),
            races: read("RACES").is_some_and(|races| races != 0),
            verbose: read("VERBOSE").is_some_and(|verbose| verbose != 0),
            fail_allocation: read("FAIL_ALLOCATION"),
            fail_copy: read("FAIL_COPY"),
            fail_launch: read("FAIL_LAUNCH"),
            ..default
        }
    }
}

/// Whether a countdown ends with this one.
pub(super) fn ends(countdown: &mut Option<u64>) -> bool {
    match countdown {
        Some(0) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

/// Back to the start: no context, no memory, no accounts, no reports, and the settings of the environment.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_reset() {
    lock().reset(Settings::from_environment());
}

/// The bytes of the device.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_memory_limit(bytes: u64) {
    let mut driver = lock();
    driver.settings.memory = bytes;
    driver.global.set_total(bytes);
}

/// One device, or none.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_devices(count: u32) {
    lock().settings.devices = count.min(1);
}

/// The driver's version, as `cuDriverGetVersion` gives it: 12040 is 12.4.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_driver_version(version: c_int) {
    lock().settings.version = version;
}

/// The compute capability: 75 is 7.5.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_capability(capability: u32) {
    lock().settings.capability = capability;
}

/// The device is gone: from here on every call fails.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_lose_device() {
    lock().settings.lost = true;
}

/// Whether the last thread of a block goes first, and the last block.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_reversed(reversed: c_int) {
    lock().settings.reversed = reversed != 0;
}

/// Whether races between the blocks of a launch are looked for.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_races(races: c_int) {
    lock().settings.races = races != 0;
}

/// The most instructions of a warp in a launch, as counted where it branches or ends.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_set_instruction_limit(limit: u64) {
    lock().settings.instruction_limit = limit;
}

/// One allocation fails, after `successes` more that do not.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_fail_allocation(successes: u64) {
    lock().settings.fail_allocation = Some(successes);
}

/// One copy or fill fails, after `successes` more that do not.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_fail_copy(successes: u64) {
    lock().settings.fail_copy = Some(successes);
}

/// One launch fails, after `successes` more that do not.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_fail_launch(successes: u64) {
    lock().settings.fail_launch = Some(successes);
}

/// Marks bytes as never written. Returns 0, or 1 where they are not within one allocation.
#[unsafe(no_mangle)]
pub extern "C" fn emulator_forget(address: u64, bytes: usize) -> c_int {
    let mut driver = lock();
    match driver.global.find_mut(address, bytes) {
        Some((allocation, offset)) => {
            allocation.mark(offset, bytes, false);
            0
        }
        None => 1,
    }
}

/// Writes the accounts.
///
/// # Safety
/// `to` points to room for an `Accounting`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn emulator_accounting(to: *mut Accounting) {
    let accounting = *lock().global.accounting();
    // SAFETY: as the caller promises.
    unsafe { to.write(accounting) };
}

/// Writes the reports since the last reset, a line each, without a zero at the end, as far as there is room. Returns the bytes that all
/// of them have.
///
/// # Safety
/// `to` points to `room` bytes, or `room` is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn emulator_reports(to: *mut c_char, room: usize) -> usize {
    let text = lock().reports.join("\n");
    // SAFETY: as the caller promises.
    unsafe { hand_out(&text, to, room) }
}

/// Writes the names of the kernels that were launched since the last reset, each once, as `emulator_reports` does.
///
/// # Safety
/// `to` points to `room` bytes, or `room` is zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn emulator_kernels(to: *mut c_char, room: usize) -> usize {
    let text = lock().kernels.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    // SAFETY: as the caller promises.
    unsafe { hand_out(&text, to, room) }
}

/// # Safety
/// `to` points to `room` bytes, or `room` is zero.
unsafe fn hand_out(text: &str, to: *mut c_char, room: usize) -> usize {
    let length = text.len().min(room);
    if length > 0 {
        // SAFETY: the text has `length` bytes, and the caller promises room for them.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length) };
    }
    text.len()
}
