//! Launches.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::PoisonError;

use super::control::ends;
use super::module::{function, max_threads};
use super::{Code, Driver, Handle, Needs, Status, call, give};
use crate::faults::Mistake;
use crate::machine::{self, Launch};
use crate::program::Program;

/// Runs a kernel. A fault is told by the next call that waits, and by every call after that.
///
/// # Safety
/// `parameters` points to a pointer for each parameter of the kernel, each to a value of its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    handle: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Status {
    call(Needs::Context, |driver| {
        driver.check_stream(stream)?;
        let function = function(driver, handle)?;
        let function = function.lock().unwrap_or_else(PoisonError::into_inner);
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        driver.global.accounting_mut().launches += 1;
        if ends(&mut driver.settings.fail_launch) {
            driver.report(format!("the launch of `{}` fails, as was asked for", function.program.name));
            return Err(Code::LaunchOutOfResources);
        }
        if !extra.is_null() {
            return Err(Code::NotSupported);
        }
        check(driver, &function.program, grid, block)?;
        if shared_bytes > function.max_dynamic_shared {
            let most = function.max_dynamic_shared;
            driver.report(format!(
                "`{}` may have {most} bytes of shared memory and asks for {shared_bytes}",
                function.program.name
            ));
            return Err(Code::InvalidValue);
        }
        // SAFETY: as the caller promises.
        let parameters = unsafe { gather(&function.program, parameters) }?;
        driver.busy = true;
        driver.kernels.insert(function.program.name.clone());
        // After a kernel that failed no other runs, which nobody has told yet.
        if driver.sticky.is_some() {
            return Ok(());
        }
        let launch = Launch {
            program: &function.program,
            grid,
            block,
            parameters,
            shared_bytes,
            global: &driver.global,
            reversed: driver.settings.reversed,
            races: driver.settings.races.then_some(driver.global.accounting().launches as u32),
            limit: driver.settings.instruction_limit,
        };
        match machine::run(&launch) {
            Ok(instructions) => driver.global.accounting_mut().instructions += instructions,
            Err(fault) => {
                driver.sticky = Some(code(&fault.mistake));
                driver.report(fault.to_string());
            }
        }
        Ok(())
    })
}

fn check(driver: &mut Driver, program: &Program, grid: [u32; 3], block: [u32; 3]) -> Result<(), Code> {
    let threads = block.iter().try_fold(1u32, |product, axis| product.checked_mul(*axis));
    let fits = grid.iter().chain(&block).all(|axis| *axis > 0)
        && grid[0] <= i32::MAX as u32
        && grid[1].max(grid[2]) <= 65535
        && block[0].max(block[1]) <= 1024
        && block[2] <= 64
        && threads.is_some_and(|threads| threads <= max_threads(program));
    if !fits {
        let most = max_threads(program);
        let name = &program.name;
        driver.report(format!(
            "`{name}` can't run with a grid of {grid:?} and blocks of {block:?}, of {most} threads at most"
        ));
        return Err(Code::InvalidValue);
    }
    Ok(())
}

/// The parameters in their places.
///
/// # Safety
/// `pointers` points to a pointer for each parameter of the kernel, each to a value of its size.
unsafe fn gather(program: &Program, pointers: *mut *mut c_void) -> Result<Vec<u8>, Code> {
    let size = program.parameters.last().map_or(0, |last| last.offset + last.size);
    if pointers.is_null() && size > 0 {
        return Err(Code::InvalidValue);
    }
    let mut bytes = vec![0u8; size];
    for (place, parameter) in program.parameters.iter().enumerate() {
        // SAFETY: as the caller promises.
        let from = unsafe { *pointers.add(place) };
        if from.is_null() {
            return Err(Code::InvalidValue);
        }
        // SAFETY: as the caller promises; a parameter may lie anywhere, so that its bytes are copied.
        let value = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), parameter.size) };
        bytes[parameter.offset..parameter.offset + parameter.size].copy_from_slice(value);
    }
    Ok(bytes)
}

/// What a GPU's driver says to a mistake, or what comes next to it where a GPU says nothing.
fn code(mistake: &Mistake) -> Code {
    match mistake {
        Mistake::OutOfBounds { .. } | Mistake::Uninitialized { .. } => Code::IllegalAddress,
        Mistake::Misaligned { .. } => Code::MisalignedAddress,
        Mistake::TooLong(_) => Code::LaunchTimeout,
        Mistake::Race { .. }
        | Mistake::RaceOfBlocks { .. }
        | Mistake::DivergentBarrier(_)
        | Mistake::DivergentWarp(_)
        | Mistake::Trap => Code::LaunchFailed,
    }
}

/// How many blocks a multiprocessor runs at once, by threads and shared memory alone.
///
/// # Safety
/// `count` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    count: *mut c_int,
    handle: Handle,
    threads: c_int,
    shared_bytes: usize,
) -> Status {
    call(Needs::Context, |driver| {
        let function = function(driver, handle)?;
        let function = function.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Code::InvalidValue)?;
        let by_threads = if threads > max_threads(&function.program) { 0 } else { 1024 / threads.next_multiple_of(32) };
        let shared = function.program.shared_bytes + shared_bytes;
        let by_shared = (64usize << 10).checked_div(shared).unwrap_or(16);
        // SAFETY: as the caller promises.
        unsafe { give(count, by_threads.min(by_shared as u32).min(16) as c_int) }
    })
}

/// The same; the flags are about caches.
///
/// # Safety
/// `count` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    count: *mut c_int,
    handle: Handle,
    threads: c_int,
    shared_bytes: usize,
    _flags: c_uint,
) -> Status {
    // SAFETY: as the caller promises.
    unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessor(count, handle, threads, shared_bytes) }
}
