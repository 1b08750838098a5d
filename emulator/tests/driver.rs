//! The driver's functions, through unmodified cudarc: what they do, what they refuse, and the failures that a test can ask for.
#![cfg(target_os = "linux")]

mod common;

use common::{Gpu, KERNELS, blocks, name};
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUevent_flags, CUfunction_attribute as FunctionAttribute};
use cudarc::driver::{CudaContext, DriverError, LaunchConfig, result};
use cudarc::nvrtc::Ptx;
use plimsoll_emulator::Accounting;

/// The name of the error of a call that fails.
fn error<T: std::fmt::Debug>(result: Result<T, DriverError>) -> String {
    name(&result.unwrap_err())
}

#[test]
fn the_stand_in_is_found_by_the_name_of_the_driver() {
    let _session = plimsoll_emulator::session().unwrap();
    // SAFETY: the library is the stand-in.
    assert!(unsafe { cudarc::driver::sys::is_culib_present() });
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.name().unwrap(), "Plimsoll emulator");
    assert_eq!(context.compute_capability().unwrap(), (7, 5));
    assert_eq!(context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE).unwrap(), 32);
    assert_eq!(CudaContext::device_count().unwrap(), 1);
    assert_eq!(&context.uuid().unwrap().bytes.map(|byte| byte as u8), b"PlimsollEmulator");
    assert_eq!(error(CudaContext::new(1)), "CUDA_ERROR_INVALID_DEVICE");
}

#[test]
fn every_byte_is_accounted_for() {
    let session = plimsoll_emulator::session().unwrap();
    session.set_memory(10_000);
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.mem_get_info().unwrap(), (10_000, 10_000));
    // SAFETY: both are freed below.
    let (a, b) = unsafe { (result::malloc_sync(4001).unwrap(), result::malloc_sync(5000).unwrap()) };
    assert_eq!(context.mem_get_info().unwrap(), (999, 10_000));
    assert_eq!((a % 256, b % 256), (0, 0));
    // SAFETY: it is not allocated.
    assert_eq!(error(unsafe { result::malloc_sync(1000) }), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_eq!(session.reports(), ["an allocation of 1000 bytes does not fit: 999 of 10000 are free"]);
    // SAFETY: nobody uses them.
    unsafe {
        result::free_sync(a).unwrap();
        assert_eq!(error(result::free_sync(a)), "CUDA_ERROR_INVALID_VALUE");
        result::free_sync(b).unwrap();
    }
    let expected = Accounting { allocations: 2, frees: 2, peak_bytes: 9001, waits: 3, ..Accounting::default() };
    assert_eq!(session.accounting(), expected);
}

#[test]
fn memory_of_the_pool_is_counted_apart() {
    let gpu = Gpu::new(KERNELS);
    assert!(gpu.context.has_async_alloc());
    let memory = gpu.stream.alloc_zeros::<f32>(10).unwrap();
    let accounting = gpu.session.accounting();
    assert_eq!((accounting.allocations, accounting.pool_allocations, accounting.live_bytes), (1, 1, 40));
    drop(memory);
    assert_eq!((gpu.session.accounting().frees, gpu.session.accounting().live_bytes), (1, 0));
}

#[test]
fn copies_are_checked_to_the_byte() {
    let gpu = Gpu::new(KERNELS);
    // SAFETY: the copies stay inside, but for those that are to fail.
    unsafe {
        let [a, b] = [0; 2].map(|_| result::malloc_sync(16).unwrap());
        result::memcpy_htod_sync(a + 4, &[1u8, 2, 3, 4]).unwrap();
        result::memcpy_dtod_sync(b, a + 4, 4).unwrap();
        let mut out = [0u8; 4];
        result::memcpy_dtoh_sync(&mut out, b).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        assert_eq!(error(result::memcpy_htod_sync(a + 13, &[0u8; 4])), "CUDA_ERROR_INVALID_VALUE");
        assert_eq!(error(result::memcpy_dtoh_sync(&mut out, a - 1)), "CUDA_ERROR_INVALID_VALUE");
        assert_eq!(error(result::memcpy_dtod_sync(b + 14, a, 4)), "CUDA_ERROR_INVALID_VALUE");
        assert_eq!(error(result::memset_d8_sync(b + 14, 0, 4)), "CUDA_ERROR_INVALID_VALUE");
        // What was never written can't be read, and a copy within the device does not change that.
        assert_eq!(error(result::memcpy_dtoh_sync(&mut out, a + 2)), "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_eq!(error(result::memcpy_dtoh_sync(&mut out, a + 6)), "CUDA_ERROR_ILLEGAL_ADDRESS");
        result::memcpy_dtod_sync(b, a + 2, 4).unwrap();
        assert_eq!(error(result::memcpy_dtoh_sync(&mut out, b)), "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert!(gpu.session.reports()[4].contains("never written: byte 2 of an allocation of 16 bytes"));
        result::memset_d8_sync(b, 7, 16).unwrap();
        result::memcpy_dtoh_sync(&mut out, b + 12).unwrap();
        assert_eq!(out, [7; 4]);
        assert!(gpu.session.forget(b + 12, 1) && !gpu.session.forget(b + 12, 5));
        assert_eq!(error(result::memcpy_dtoh_sync(&mut out, b + 12)), "CUDA_ERROR_ILLEGAL_ADDRESS");
        result::free_sync(a).unwrap();
        assert_eq!(error(result::memcpy_htod_sync(a, &[0u8])), "CUDA_ERROR_INVALID_VALUE");
    }
}

#[test]
fn modules_that_can_not_run_are_refused_with_the_line() {
    let gpu = Gpu::new(KERNELS);
    let load = |source: String| gpu.context.load_module(Ptx::from_src(source));
    let with = |code: &str| format!(".version 8.1\n.target sm_75\n.address_size 64\n.entry f()\n{{\n{code}\n}}");
    assert!(load(with("ret;")).is_ok());
    for (code, reason) in [
        ("frobnicate.u32;", "PTX line 6: `frobnicate.u32` is not supported"),
        ("membar.gl.deep;", "PTX line 6: `.deep` of `membar.gl.deep` is not supported"),
        ("bra nowhere;", "PTX line 6: the label `nowhere` does not exist"),
        ("add.u32 %r1, %r1, 1;", "PTX line 6: `%r1` is not declared"),
    ] {
        assert_eq!(error(load(with(code))), "CUDA_ERROR_INVALID_PTX");
        assert_eq!(gpu.session.reports().last().unwrap(), &format!("the module can't be loaded: {reason}"));
    }
    assert_eq!(error(load(with("ret;").replace("sm_75", "sm_80"))), "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_eq!(error(load("\u{7f}ELF".into())), "CUDA_ERROR_INVALID_PTX");
    assert_eq!(error(gpu.module.load_function("nothing")), "CUDA_ERROR_NOT_FOUND");
}

#[test]
fn a_driver_that_is_too_old_refuses_newer_ptx() {
    let session = plimsoll_emulator::session().unwrap();
    session.set_driver_version(11_080);
    let mut version = 0;
    // SAFETY: there is room.
    unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut version) }.result().unwrap();
    assert_eq!(version, 11_080);
    let context = CudaContext::new(0).unwrap();
    let refused = context.load_module(Ptx::from_src(KERNELS));
    assert_eq!(error(refused), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    assert_eq!(session.reports(), ["PTX 8.1 needs a driver of version 12010, and this one is 11080"]);
    session.set_driver_version(12_010);
    assert!(context.load_module(Ptx::from_src(KERNELS)).is_ok());
}

#[test]
fn launches_that_no_device_can_run_are_refused() {
    let gpu = Gpu::new(KERNELS);
    let mut y = gpu.stream.alloc_zeros::<f64>(1).unwrap();
    let x = gpu.stream.alloc_zeros::<f32>(1024).unwrap();
    let mut launch = |config: LaunchConfig| launch!(gpu, "sum_double", config, &mut y, &x, &1024i32);
    let cube = |grid_dim, block_dim| LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0 };
    for config in [
        blocks(0, 32, 0),
        blocks(1, 0, 0),
        blocks(1, 1025, 0),
        blocks(1, 128, 49_153),
        cube((1, 65_536, 1), (1, 1, 1)),
        cube((1, 1, 1), (1, 1, 65)),
        cube((1, 1, 1), (32, 32, 2)),
    ] {
        assert_eq!(error(launch(config)), "CUDA_ERROR_INVALID_VALUE", "{config:?}");
    }
    launch(blocks(1, 128, 1024)).unwrap();
    // Too little shared memory is a fault of the kernel.
    launch(blocks(1, 128, 512)).unwrap();
    assert_eq!(error(gpu.stream.synchronize()), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

#[test]
fn kernels_tell_their_properties() {
    let gpu = Gpu::new(KERNELS);
    let get = |kernel: &str, attribute| gpu.module.load_function(kernel).unwrap().get_attribute(attribute).unwrap();
    // 16 x 16 and 16 x 17 floats; 8 counts; one launch may ask for what is left of 48 KiB.
    assert_eq!(get("matmul", FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 2112);
    assert_eq!(get("histogram", FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 32);
    assert_eq!(get("matmul", FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 49_152 - 2112);
    let function = gpu.module.load_function("sum_double").unwrap();
    let most = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(most, 65_536).unwrap();
    assert_eq!(error(function.set_attribute(most, 65_537)), "CUDA_ERROR_INVALID_VALUE");
}

#[test]
fn streams_and_events() {
    let gpu = Gpu::new(KERNELS);
    let stream = gpu.context.new_stream().unwrap();
    let event = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    gpu.stream.wait(&event).unwrap();
    let later = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
    assert!(event.elapsed_ms(&later).unwrap() >= 0.0);
    event.synchronize().unwrap();
    stream.synchronize().unwrap();
    // SAFETY: no such stream exists, which is what is tested.
    let stranger = unsafe { result::stream::synchronize(0x1234 as _) };
    assert_eq!(error(stranger), "CUDA_ERROR_INVALID_HANDLE");
}

#[test]
fn failures_come_when_they_are_asked_for() {
    let gpu = Gpu::new(KERNELS);
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    let x = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    let mut axpy = || launch!(gpu, "axpy", blocks(1, 32, 0), &mut y, &x, &1f32, &32i32);

    gpu.session.fail_launch(1);
    axpy().unwrap();
    assert_eq!(error(axpy()), "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    axpy().unwrap();

    gpu.session.fail_allocation(1);
    // SAFETY: nothing is read.
    let allocate = || unsafe { result::malloc_sync(64) };
    allocate().unwrap();
    assert_eq!(error(allocate()), "CUDA_ERROR_OUT_OF_MEMORY");
    allocate().unwrap();

    gpu.session.fail_copy(1);
    let from = allocate().unwrap();
    // SAFETY: there is room.
    let copy = || unsafe { result::memcpy_htod_sync(from, &[0u8; 64]) };
    copy().unwrap();
    assert_eq!(error(copy()), "CUDA_ERROR_ECC_UNCORRECTABLE");
    copy().unwrap();

    gpu.session.lose_device();
    assert_eq!(error(gpu.stream.synchronize()), "CUDA_ERROR_UNKNOWN");
    assert_eq!(error(gpu.stream.alloc_zeros::<f32>(1)), "CUDA_ERROR_UNKNOWN");
    assert_eq!(error(CudaContext::new(0)), "CUDA_ERROR_UNKNOWN");
    assert_eq!(gpu.session.reports().len(), 3);
}

#[test]
fn there_may_be_no_device() {
    let session = plimsoll_emulator::session().unwrap();
    session.set_devices(0);
    assert_eq!(error(CudaContext::new(0)), "CUDA_ERROR_NO_DEVICE");
    session.set_devices(1);
    assert!(CudaContext::new(0).is_ok());
}

#[test]
fn the_device_may_be_older() {
    let session = plimsoll_emulator::session().unwrap();
    session.set_capability(61);
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.compute_capability().unwrap(), (6, 1));
    assert_eq!(error(context.load_module(Ptx::from_src(KERNELS))), "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_eq!(session.reports(), ["the module is for sm_75, and the device is sm_61"]);
}

/// By the driver's own page on which calls synchronize.
#[test]
fn calls_that_wait_are_counted() {
    let gpu = Gpu::new(KERNELS);
    let waits = || (gpu.session.accounting().waits, gpu.session.accounting().waits_for_work);
    // SAFETY: the copies stay inside, and the memory is freed once.
    unsafe {
        let memory = result::malloc_sync(16).unwrap();
        assert_eq!(waits(), (0, 0));
        let stream = gpu.stream.cu_stream();
        result::memset_d8_async(memory, 7, 16, stream).unwrap();
        result::memcpy_dtod_sync(memory, memory + 8, 8).unwrap();
        assert_eq!(waits(), (0, 0));
        result::memcpy_htod_sync(memory, &[1u8; 4]).unwrap();
        assert_eq!(waits(), (1, 1));
        // There is nothing left to wait for.
        result::memcpy_dtoh_sync(&mut [0u8; 4], memory).unwrap();
        assert_eq!(waits(), (2, 1));
        result::memcpy_htod_async(memory, &[1u8; 4], stream).unwrap();
        assert_eq!(waits(), (3, 1));
        let pinned = result::malloc_host(16, 0).unwrap();
        result::memcpy_htod_async(memory, std::slice::from_raw_parts(pinned.cast::<u8>(), 16), stream).unwrap();
        assert_eq!(waits(), (3, 1));
        gpu.stream.synchronize().unwrap();
        assert_eq!(waits(), (4, 2));
        result::free_host(pinned).unwrap();
        result::free_sync(memory).unwrap();
        assert_eq!(waits(), (5, 2));
    }
}

#[test]
fn a_kernel_that_fails_is_told_by_the_next_call_that_waits() {
    let gpu = Gpu::new(KERNELS);
    let memory = gpu.stream.clone_htod(&[1f32; 32]).unwrap();
    let mut y = gpu.stream.clone_htod(&[2f32; 32]).unwrap();
    gpu.session.set_instruction_limit(1);
    for _ in 0..2 {
        launch!(gpu, "axpy", blocks(1, 32, 0), &mut y, &memory, &3f32, &32i32).unwrap();
    }
    // The second was never begun, and its fault is no second one.
    assert_eq!(gpu.session.reports().len(), 1);
    assert_eq!(gpu.session.kernels(), ["axpy"]);
    assert_eq!(error(gpu.stream.clone_dtoh(&y)), "CUDA_ERROR_LAUNCH_TIMEOUT");
    assert_eq!(error(gpu.stream.alloc_zeros::<f32>(1)), "CUDA_ERROR_LAUNCH_TIMEOUT");
}

#[test]
fn the_end_of_the_context_gives_everything_back() {
    let session = plimsoll_emulator::session().unwrap();
    let context = CudaContext::new(0).unwrap();
    // SAFETY: it is never used.
    unsafe { result::malloc_sync(64) }.unwrap();
    assert_eq!(session.accounting().live_bytes, 64);
    drop(context);
    assert_eq!((session.accounting().live_bytes, session.accounting().frees), (0, 0));
    assert!(CudaContext::new(0).is_ok());
}

#[test]
fn instructions_are_counted_for_each_thread() {
    let session = plimsoll_emulator::session().unwrap();
    let context = CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let code =
        ".reg .pred %p<2>; .reg .b32 %r<2>; setp.lt.u32 %p1, %laneid, 16; @%p1 bra $end; mov.u32 %r1, 5; $end: ret;";
    let source = format!(".version 8.1\n.target sm_75\n.address_size 64\n.entry f()\n{{\n{code}\n}}");
    let module = context.load_module(Ptx::from_src(source)).unwrap();
    let function = module.load_function("f").unwrap();
    // SAFETY: the kernel has no arguments.
    unsafe { stream.launch_builder(&function).launch(blocks(3, 32, 0)) }.unwrap();
    // Half of the threads run all four, and half jump over one.
    assert_eq!(session.accounting().instructions, 3 * (16 * 4 + 16 * 3));
    assert_eq!(session.accounting().launches, 1);
}
