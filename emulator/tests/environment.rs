//! Settings from the environment, for programs that can't call the controls.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Gpu, MISTAKES, blocks};
use cudarc::driver::{CudaContext, result};

#[test]
fn settings_come_from_the_environment() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "in_a_process_of_its_own", "--ignored"]);
    child.envs([
        ("PLIMSOLL_EMULATOR_MEMORY", "12345"),
        ("PLIMSOLL_EMULATOR_DRIVER_VERSION", "12020"),
        ("PLIMSOLL_EMULATOR_FAIL_ALLOCATION", "1"),
        ("PLIMSOLL_EMULATOR_CAPABILITY", "89"),
        ("PLIMSOLL_EMULATOR_RACES", "1"),
    ]);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
#[ignore = "runs in a process of its own, started by the other test"]
fn in_a_process_of_its_own() {
    let session = plimsoll_emulator::session().unwrap();
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.mem_get_info().unwrap(), (12345, 12345));
    assert_eq!(context.compute_capability().unwrap(), (8, 9));
    let mut version = 0;
    // SAFETY: there is room for the version, and the memory ends with the context.
    unsafe {
        cudarc::driver::sys::cuDriverGetVersion(&mut version).result().unwrap();
        result::malloc_sync(16).unwrap();
        assert!(result::malloc_sync(16).is_err());
        result::malloc_sync(16).unwrap();
    }
    assert_eq!(version, 12020);
    drop(context);
    drop(session);
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.clone_htod(&[0f32; 32]).unwrap();
    launch!(gpu, "blocks_shift", blocks(2, 16, 0), &mut y, &32i32).unwrap();
    assert!(gpu.stream.synchronize().is_err());
}
