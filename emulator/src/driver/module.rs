//! Modules of PTX, their kernels and their variables.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::device::{SHARED, SHARED_OPT_IN};
use super::{Code, DevicePointer, Driver, Handle, Needs, Status, call, give};
use crate::program::Program;
use crate::ptx::{self, Module, Space};

/// A loaded module.
#[derive(Debug)]
pub struct LoadedModule {
    kernels: HashMap<String, Arc<Program>>,
    /// Addresses and bytes of its variables.
    variables: HashMap<String, (u64, usize)>,
    functions: Vec<usize>,
}

/// A kernel as the application sees it.
#[derive(Debug)]
pub struct Function {
    /// What it runs.
    pub program: Arc<Program>,
    /// The bytes of shared memory that a launch may ask for.
    pub max_dynamic_shared: u32,
    /// The architecture and the version of its PTX, as attributes give them: 75 and 81.
    versions: [u32; 2],
}

/// The driver that a version of PTX needs, from the table of releases in NVIDIA's reference of PTX.
fn needed_driver((major, minor): (u32, u32)) -> i32 {
    match (major, minor) {
        (..=6, _) => 10020,
        (7, minor) => 11000 + 10 * minor.min(8) as i32,
        (8, minor @ ..=4) => 12000 + 10 * minor as i32,
        (8, 5) => 12050,
        (8, 6) => 12070,
        (8, 7) => 12080,
        (8, 8) => 12090,
        _ => 13000,
    }
}

fn load(driver: &mut Driver, source: &str) -> Result<usize, Code> {
    let refuse = |driver: &mut Driver, error: ptx::Error| {
        driver.report(format!("the module can't be loaded: {error}"));
        Code::InvalidPtx
    };
    let module = ptx::parse(source).map_err(|error| refuse(driver, error))?;
    let (needed, has) = (needed_driver(module.version), driver.settings.version);
    if needed > has {
        let (major, minor) = module.version;
        driver.report(format!("PTX {major}.{minor} needs a driver of version {needed}, and this one is {has}"));
        return Err(Code::UnsupportedPtxVersion);
    }
    let capability = driver.settings.capability;
    if module.target > capability {
        driver.report(format!("the module is for sm_{}, and the device is sm_{capability}", module.target));
        return Err(Code::NoBinaryForGpu);
    }
    let variables = place(driver, &module)?;
    let addresses = variables.iter().map(|(name, (address, _))| (name.clone(), *address)).collect();
    let mut kernels = HashMap::new();
    for entry in &module.entries {
        match Program::decode(&module, entry, &addresses) {
            Ok(program) => {
                kernels.insert(entry.name.clone(), Arc::new(program));
            }
            Err(error) => {
                variables.values().for_each(|(address, _)| _ = driver.global.free(*address));
                return Err(refuse(driver, error));
            }
        }
    }
    let number = driver.handle();
    driver.modules.insert(number, LoadedModule { kernels, variables, functions: Vec::new() });
    Ok(number)
}

/// Gives a module's global and constant variables their memory, which begins with what they say, and then zeros.
fn place(driver: &mut Driver, module: &Module) -> Result<HashMap<String, (u64, usize)>, Code> {
    let mut variables = HashMap::new();
    for variable in module.variables.iter().filter(|variable| variable.space != Space::Shared) {
        let Some(size) = variable.size.filter(|size| *size > 0) else { continue };
        let address = driver.global.allocate(size, true).map_err(|_| Code::OutOfMemory)?;
        if let Some((memory, _)) = driver.global.find_mut(address, size) {
            memory.write(0, &variable.initial);
            memory.mark(0, size, true);
        }
        variables.insert(variable.name.clone(), (address, size));
    }
    Ok(variables)
}

/// # Safety
/// `image` is null or the start of a text that ends with a zero.
unsafe fn text<'a>(image: *const c_void) -> Result<&'a str, Code> {
    if image.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(image.cast()) };
    // Machine code begins with other bytes; only PTX runs here.
    bytes.to_str().map_err(|_| Code::InvalidImage)
}

/// Loads a module from memory.
///
/// # Safety
/// `module` is null or points to room; `image` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut Handle, image: *const c_void) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        let number = load(driver, unsafe { text(image) }?)?;
        // SAFETY: as the caller promises.
        unsafe { give(module, number as Handle) }
    })
}

/// Loads a module from memory; the options are for a compiler that is not here.
///
/// # Safety
/// As for `cuModuleLoadData`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut Handle,
    image: *const c_void,
    _count: c_uint,
    _options: *mut c_uint,
    _values: *mut *mut c_void,
) -> Status {
    // SAFETY: as the caller promises.
    unsafe { cuModuleLoadData(module, image) }
}

/// Loads a module from a file.
///
/// # Safety
/// `module` is null or points to room; `path` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoad(module: *mut Handle, path: *const c_char) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        let path = unsafe { text(path.cast()) }?;
        let source = std::fs::read_to_string(path).map_err(|_| Code::FileNotFound)?;
        let number = load(driver, &source)?;
        // SAFETY: as the caller promises.
        unsafe { give(module, number as Handle) }
    })
}

/// Unloads a module; its kernels can't be launched any more.
#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: Handle) -> Status {
    call(Needs::Context, |driver| {
        let module = driver.modules.remove(&(module as usize)).ok_or(Code::InvalidHandle)?;
        module.functions.iter().for_each(|function| _ = driver.functions.remove(function));
        module.variables.values().for_each(|(address, _)| _ = driver.global.free(*address));
        Ok(())
    })
}

/// A kernel by its name.
///
/// # Safety
/// `function` is null or points to room; `name` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name.cast()) }?;
        let number = driver.handle();
        let module = driver.modules.get_mut(&(module as usize)).ok_or(Code::InvalidHandle)?;
        let Some(program) = module.kernels.get(name).cloned() else {
            driver.report(format!("the module has no kernel `{name}`"));
            return Err(Code::NotFound);
        };
        module.functions.push(number);
        let max_dynamic_shared = SHARED.saturating_sub(program.shared_bytes as u32);
        let entry = Function { program, max_dynamic_shared, versions: [75, 81] };
        driver.functions.insert(number, Arc::new(Mutex::new(entry)));
        // SAFETY: as the caller promises.
        unsafe { give(function, number as Handle) }
    })
}

/// A variable by its name.
///
/// # Safety
/// `address` and `bytes` are null or point to room; `name` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut DevicePointer,
    bytes: *mut usize,
    module: Handle,
    name: *const c_char,
) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name.cast()) }?;
        let module = driver.modules.get(&(module as usize)).ok_or(Code::InvalidHandle)?;
        let (found, size) = *module.variables.get(name).ok_or(Code::NotFound)?;
        // SAFETY: as the caller promises; a caller may want one of the two.
        unsafe {
            if !address.is_null() {
                give(address, found)?;
            }
            if bytes.is_null() { Ok(()) } else { give(bytes, size) }
        }
    })
}

/// A kernel by its handle.
pub(super) fn function(driver: &Driver, handle: Handle) -> Result<Arc<Mutex<Function>>, Code> {
    driver.functions.get(&(handle as usize)).cloned().ok_or(Code::InvalidHandle)
}

fn open(function: &Mutex<Function>) -> MutexGuard<'_, Function> {
    function.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most threads of a block that a kernel runs with.
pub(super) fn max_threads(program: &Program) -> u32 {
    program.max_threads.unwrap_or(1024).min(1024)
}

/// A property of a kernel.
///
/// # Safety
/// `value` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, handle: Handle) -> Status {
    call(Needs::Context, |driver| {
        let function = function(driver, handle)?;
        let function = open(&function);
        let found = match attribute {
            0 => max_threads(&function.program),             // MAX_THREADS_PER_BLOCK
            1 => function.program.shared_bytes as u32,       // SHARED_SIZE_BYTES
            2 => 0,                                          // CONST_SIZE_BYTES
            3 => function.program.layout.local_bytes as u32, // LOCAL_SIZE_BYTES
            4 => 32,                                         // NUM_REGS, which only a compiler knows
            5 => function.versions[1],                       // PTX_VERSION
            6 => function.versions[0],                       // BINARY_VERSION
            7 => 0,                                          // CACHE_MODE_CA
            8 => function.max_dynamic_shared,                // MAX_DYNAMIC_SHARED_SIZE_BYTES
            _ => return Err(Code::InvalidValue),
        };
        // SAFETY: as the caller promises.
        unsafe { give(value, found as c_int) }
    })
}

/// Changes a property of a kernel: the bytes of shared memory that a launch may ask for.
#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(handle: Handle, attribute: c_uint, value: c_int) -> Status {
    call(Needs::Context, |driver| {
        let function = function(driver, handle)?;
        let mut function = open(&function);
        let most = SHARED_OPT_IN.saturating_sub(function.program.shared_bytes as u32);
        match (attribute, u32::try_from(value)) {
            (8, Ok(bytes)) if bytes <= most => function.max_dynamic_shared = bytes,
            (9, _) => {} // PREFERRED_SHARED_MEMORY_CARVEOUT, a hint
            _ => return Err(Code::InvalidValue),
        }
        Ok(())
    })
}

/// A hint that makes no difference here.
#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetCacheConfig(handle: Handle, _config: c_uint) -> Status {
    call(Needs::Context, |driver| function(driver, handle).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::needed_driver;

    #[test]
    fn each_ptx_needs_the_driver_of_its_release() {
        let releases =
            [((6, 5), 10020), ((7, 0), 11000), ((7, 8), 11080), ((8, 0), 12000), ((8, 1), 12010), ((8, 4), 12040)];
        let later = [((8, 5), 12050), ((8, 6), 12070), ((8, 7), 12080), ((8, 8), 12090), ((9, 0), 13000)];
        assert!(releases.into_iter().chain(later).all(|(version, driver)| needed_driver(version) == driver));
    }
}
