//! For tests: finds the shared libraries that cargo built beside the test, loads them in the place of the driver and of cuBLAS, and
//! wraps their controls.
//!
//! ```no_run
//! let session = plimsoll_emulator::session()?;
//! session.set_memory(1 << 30);
//! // ... the application, through cudarc ...
//! assert_eq!(session.accounting().allocations, 1);
//! assert!(session.reports().is_empty());
//! # Ok::<(), plimsoll_emulator::LoadError>(())
//! ```

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::memory::Accounting;

/// Why the stand-in can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for LoadError {}

/// The control functions of the loaded library.
struct Controls {
    reset: extern "C" fn(),
    set_memory_limit: extern "C" fn(u64),
    set_devices: extern "C" fn(u32),
    set_driver_version: extern "C" fn(c_int),
    set_capability: extern "C" fn(u32),
    lose_device: extern "C" fn(),
    set_reversed: extern "C" fn(c_int),
    set_races: extern "C" fn(c_int),
    set_instruction_limit: extern "C" fn(u64),
    fail_allocation: extern "C" fn(u64),
    fail_copy: extern "C" fn(u64),
    fail_launch: extern "C" fn(u64),
    forget: extern "C" fn(u64, usize) -> c_int,
    accounting: unsafe extern "C" fn(*mut Accounting),
    kernels: unsafe extern "C" fn(*mut c_char, usize) -> usize,
    reports: unsafe extern "C" fn(*mut c_char, usize) -> usize,
}

/// A device for one test: while a session lives, another waits. It begins with an empty device and default settings.
pub struct Session {
    controls: &'static Controls,
    _turn: MutexGuard<'static, ()>,
}

/// Loads the stand-ins, once in a process, and begins a session. Call it before the first call of cudarc: a driver that was found
/// before stays.
pub fn session() -> Result<Session, LoadError> {
    static TURN: Mutex<()> = Mutex::new(());
    let controls = controls()?;
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (controls.reset)();
    Ok(Session { controls, _turn: turn })
}

impl Drop for Session {
    fn drop(&mut self) {
        (self.controls.reset)();
    }
}

impl Session {
    /// The bytes of the device.
    pub fn set_memory(&self, bytes: u64) {
        (self.controls.set_memory_limit)(bytes);
    }

    /// One device, or none. To be said before `cuInit`.
    pub fn set_devices(&self, count: u32) {
        (self.controls.set_devices)(count);
    }

    /// The driver's version: 12040 is 12.4. PTX that is newer does not load.
    pub fn set_driver_version(&self, version: i32) {
        (self.controls.set_driver_version)(version);
    }

    /// The compute capability: 75 is 7.5. To be said before `cuInit`.
    pub fn set_capability(&self, capability: u32) {
        (self.controls.set_capability)(capability);
    }

    /// The device is gone: from here on every call fails with `CUDA_ERROR_UNKNOWN`.
    pub fn lose_device(&self) {
        (self.controls.lose_device)();
    }

    /// Whether the last thread of a block goes first, and the last block. Results must not depend on it.
    pub fn set_reversed(&self, reversed: bool) {
        (self.controls.set_reversed)(reversed.into());
    }

    /// Whether races between the blocks of a launch are looked for, which takes time, and four times the memory that kernels touch.
    /// Blocks that speak to one another by atomics and fences are taken for races.
    pub fn set_races(&self, races: bool) {
        (self.controls.set_races)(races.into());
    }

    /// The most instructions of a warp in a launch, as counted where it branches or ends; more are a fault.
    pub fn set_instruction_limit(&self, limit: u64) {
        (self.controls.set_instruction_limit)(limit);
    }

    /// One allocation fails, after `successes` more that do not, with `CUDA_ERROR_OUT_OF_MEMORY`.
    pub fn fail_allocation(&self, successes: u64) {
        (self.controls.fail_allocation)(successes);
    }

    /// One copy or fill fails, after `successes` more that do not, with `CUDA_ERROR_ECC_UNCORRECTABLE`.
    pub fn fail_copy(&self, successes: u64) {
        (self.controls.fail_copy)(successes);
    }

    /// One launch or product of cuBLAS fails, after `successes` more that do not, with `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
    pub fn fail_launch(&self, successes: u64) {
        (self.controls.fail_launch)(successes);
    }

    /// From here on these bytes were never written: who reads them before writing them has a fault. Returns false where the range is not
    /// within one allocation.
    pub fn forget(&self, address: u64, bytes: usize) -> bool {
        (self.controls.forget)(address, bytes) == 0
    }

    /// What was allocated, copied and launched in this session.
    pub fn accounting(&self) -> Accounting {
        let mut accounting = Accounting::default();
        // SAFETY: there is room for the accounts.
        unsafe { (self.controls.accounting)(&mut accounting) };
        accounting
    }

    /// What went wrong in this session, a line each: faults with their places, refused modules, failures that were asked for.
    pub fn reports(&self) -> Vec<String> {
        lines(self.controls.reports)
    }

    /// The names of the kernels that were launched in this session, each once.
    pub fn kernels(&self) -> Vec<String> {
        lines(self.controls.kernels)
    }
}

/// The lines of a text that the library hands out.
fn lines(of: unsafe extern "C" fn(*mut c_char, usize) -> usize) -> Vec<String> {
    // SAFETY: no room is promised.
    let length = unsafe { of(std::ptr::null_mut(), 0) };
    let mut text = vec![0u8; length];
    // SAFETY: there is room for as many bytes.
    let length = unsafe { of(text.as_mut_ptr().cast(), text.len()) }.min(length);
    String::from_utf8_lossy(&text[..length]).lines().map(str::to_owned).collect()
}

fn controls() -> Result<&'static Controls, LoadError> {
    static CONTROLS: OnceLock<Result<Controls, LoadError>> = OnceLock::new();
    CONTROLS.get_or_init(load).as_ref().map_err(LoadError::clone)
}

fn load() -> Result<Controls, LoadError> {
    let driver = open("plimsoll_emulator")?;
    // SAFETY: the names and types are those that `driver/control.rs` of this very crate has.
    unsafe {
        Ok(Controls {
            reset: symbol(driver, "emulator_reset")?,
            set_memory_limit: symbol(driver, "emulator_set_memory_limit")?,
            set_devices: symbol(driver, "emulator_set_devices")?,
            set_driver_version: symbol(driver, "emulator_set_driver_version")?,
            set_capability: symbol(driver, "emulator_set_capability")?,
            lose_device: symbol(driver, "emulator_lose_device")?,
            set_reversed: symbol(driver, "emulator_set_reversed")?,
            set_races: symbol(driver, "emulator_set_races")?,
            set_instruction_limit: symbol(driver, "emulator_set_instruction_limit")?,
            fail_allocation: symbol(driver, "emulator_fail_allocation")?,
            fail_copy: symbol(driver, "emulator_fail_copy")?,
            fail_launch: symbol(driver, "emulator_fail_launch")?,
            forget: symbol(driver, "emulator_forget")?,
            accounting: symbol(driver, "emulator_accounting")?,
            kernels: symbol(driver, "emulator_kernels")?,
            reports: symbol(driver, "emulator_reports")?,
        })
    }
}

/// Loads the stand-in for cuBLAS, once in a process; a session must have begun. The test's package has `plimsoll-emulator-cublas` among its
/// dev-dependencies, so that cargo builds it. Without this call a program finds the cuBLAS of the machine, or none.
pub fn load_cublas() -> Result<(), LoadError> {
    static LOADED: OnceLock<Result<(), LoadError>> = OnceLock::new();
    LOADED.get_or_init(|| open("plimsoll_emulator_cublas").map(|_| ())).clone()
}

/// Loads a library for the life of the process, so that whoever asks for it by its name gets it.
fn open(name: &str) -> Result<&'static Library, LoadError> {
    let file = format!("lib{name}.so");
    let places = places();
    let path = places.iter().map(|place| place.join(&file)).find(|path| path.is_file()).ok_or_else(|| {
        LoadError(format!(
            "`{file}` is in none of {places:?}: build it with `cargo build -p {}`",
            name.replace('_', "-")
        ))
    })?;
    // SAFETY: the library was built from this workspace, and nothing runs when it is loaded.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) };
    let library = library.map_err(|error| LoadError(format!("{} can't be loaded: {error}", path.display())))?;
    Ok(Box::leak(Box::new(library)))
}

/// Where cargo puts the libraries: into the folder `deps` of the profile, in which a test lies too, and beside which an example or a
/// binary lies.
fn places() -> Vec<PathBuf> {
    let executable = std::env::current_exe().unwrap_or_default();
    let near = executable.ancestors().skip(1).take(2).flat_map(|folder| [folder.to_owned(), folder.join("deps")]);
    // Programs elsewhere, such as documentation tests: by the folder in which this crate was built.
    let built = Path::new(env!("OUT_DIR")).ancestors().nth(3).map(|profile| profile.join("deps"));
    near.chain(built).collect()
}

/// # Safety
/// The library's function has the type `T`.
unsafe fn symbol<T: Copy>(library: &'static Library, name: &str) -> Result<T, LoadError> {
    // SAFETY: as the caller promises.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|error| LoadError(format!("the library has no `{name}`: {error}")))
}
