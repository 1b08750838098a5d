//! Kernels that do one thing wrong: each is found, and the report names the kernel, the lines, the block and the thread.
#![cfg(target_os = "linux")]

mod common;

use common::{Gpu, MISTAKES, blocks, name};
use cudarc::driver::LaunchConfig;

/// The line of a kernel's source that has this text.
fn line(text: &str) -> usize {
    let source = include_str!("kernels/mistakes.cu");
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

/// The error that waiting gives after a launch, and the one report.
fn found(gpu: &Gpu) -> (String, String) {
    let error = gpu.stream.synchronize().unwrap_err();
    let reports = gpu.session.reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    // Whoever prints the error prints the report.
    assert!(error.error_string().unwrap().to_str().unwrap().contains(&reports[0]));
    // The context is of no more use.
    assert_eq!(gpu.stream.alloc_zeros::<f32>(1).unwrap_err(), error);
    (name(&error), reports[0].clone())
}

#[test]
fn a_store_past_the_end() {
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(96).unwrap();
    launch!(gpu, "past_the_end", blocks(4, 32, 0), &mut y, &96i32).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(report.starts_with("kernel `past_the_end`, PTX line "), "{report}");
    let place = format!("(mistakes.cu:{}), block (3, 0, 0), thread (0, 0, 0): ", line("if (i <= n) y[i] = 1;"));
    assert!(report.contains(&place), "{report}");
    assert!(
        report.contains("store of 4 bytes") && report.contains("0 bytes past the end of an allocation of 384 bytes"),
        "{report}"
    );
}

#[test]
fn the_line_of_the_ptx_is_that_of_the_instruction() {
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    launch!(gpu, "past_the_end", blocks(2, 32, 0), &mut y, &32i32).unwrap();
    let (_, report) = found(&gpu);
    let number: usize = report.split("PTX line ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(MISTAKES.lines().nth(number - 1).unwrap().trim().starts_with("st.global.u32"), "{report}");
}

#[test]
fn a_load_before_the_start() {
    let gpu = Gpu::new(MISTAKES);
    let x = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    launch!(gpu, "before_the_start", blocks(1, 32, 0), &mut y, &x).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(report.contains("thread (0, 0, 0): load of 4 bytes"), "{report}");
    assert!(report.contains("12 bytes before an allocation of 128 bytes"), "{report}");
}

#[test]
fn a_load_of_what_was_never_written() {
    let gpu = Gpu::new(MISTAKES);
    // SAFETY: that it is not written is what is tested.
    let mut x = unsafe { gpu.stream.alloc::<f32>(32) }.unwrap();
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    gpu.stream.memcpy_htod(&[1f32; 20], &mut x).unwrap();
    launch!(gpu, "never_written", blocks(1, 20, 0), &mut y, &x).unwrap();
    gpu.stream.synchronize().unwrap();
    launch!(gpu, "never_written", blocks(1, 32, 0), &mut y, &x).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(report.contains("thread (20, 0, 0): load of 4 bytes"), "{report}");
    assert!(report.contains("was never written: byte 80 of an allocation of 128 bytes"), "{report}");
}

#[test]
fn a_misaligned_load() {
    let gpu = Gpu::new(MISTAKES);
    let x = gpu.stream.alloc_zeros::<u8>(256).unwrap();
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    launch!(gpu, "misaligned", blocks(1, 32, 0), &mut y, &x).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_MISALIGNED_ADDRESS");
    assert!(report.contains("thread (7, 0, 0): load of 4 bytes"), "{report}");
}

/// What is found in a kernel that has one array of floats.
fn of_one_array(kernel: &str, config: LaunchConfig) -> (String, String) {
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(64).unwrap();
    launch!(gpu, kernel, config, &mut y).unwrap();
    found(&gpu)
}

#[test]
fn barriers_that_some_threads_do_not_reach() {
    let (error, report) = of_one_array("half_a_barrier", blocks(1, 64, 0));
    assert_eq!(error, "CUDA_ERROR_LAUNCH_FAILED");
    assert!(report.contains(&format!("mistakes.cu:{}", line("if (threadIdx.x < 40)"))), "{report}");
    assert!(report.contains("divergent barrier: threads 0x000000ff of the warp are here"), "{report}");
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(64).unwrap();
    launch!(gpu, "early_return", blocks(1, 64, 0), &mut y, &64i32).unwrap();
    gpu.stream.synchronize().unwrap();
    launch!(gpu, "early_return", blocks(1, 64, 0), &mut y, &32i32).unwrap();
    let (_, report) = found(&gpu);
    assert!(report.contains("divergent barrier: thread 32 of the block has ended"), "{report}");
}

#[test]
fn races_in_shared_memory() {
    let (error, report) = of_one_array("missing_barrier", blocks(1, 64, 0));
    assert_eq!(error, "CUDA_ERROR_LAUNCH_FAILED");
    assert!(report.contains(&format!("mistakes.cu:{}", line("parts[threadIdx.x] = threadIdx.x + 1"))), "{report}");
    assert!(report.contains("thread (32, 0, 0): race in shared memory at 0x80"), "{report}");
    assert!(report.contains("another thread read what this one writes, the other being thread 31"), "{report}");
    let (_, report) = of_one_array("missing_warp_barrier", blocks(1, 32, 0));
    assert!(
        report.contains(
            "race in shared memory at 0x7c: another thread wrote what this one reads, the other being thread 31"
        ),
        "{report}"
    );
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    launch!(gpu, "with_warp_barrier", blocks(1, 32, 0), &mut y).unwrap();
    let y = gpu.stream.clone_dtoh(&y).unwrap();
    assert!(y.iter().enumerate().all(|(i, y)| *y == 31.0 - i as f32));
}

#[test]
fn shared_memory_past_the_end() {
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    launch!(gpu, "shared_past_the_end", blocks(1, 32, 0), &mut y, &1i32).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert!(
        report.contains(
            "thread (31, 0, 0): store of 4 bytes at 0x80 is outside of shared memory: the block has 128 bytes"
        ),
        "{report}"
    );
}

#[test]
fn shuffles_with_threads_that_take_no_part() {
    let (error, report) = of_one_array("lonely_shuffle", blocks(1, 32, 0));
    assert_eq!(error, "CUDA_ERROR_LAUNCH_FAILED");
    assert!(
        report.contains("divergent warp: the shuffle reads thread 16 of the warp, which takes no part"),
        "{report}"
    );
    let (_, report) = of_one_array("absent_shuffle", blocks(1, 32, 0));
    assert!(
        report.contains("divergent warp: threads 0xffffffff of the warp wait for threads that do not come"),
        "{report}"
    );
}

#[test]
fn kernels_that_do_not_end_or_trap() {
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.alloc_zeros::<f32>(32).unwrap();
    gpu.session.set_instruction_limit(10_000);
    launch!(gpu, "endless", blocks(1, 32, 0), &mut y).unwrap();
    let (error, report) = found(&gpu);
    assert_eq!(error, "CUDA_ERROR_LAUNCH_TIMEOUT");
    assert!(report.contains("a warp ran more than 10000 instructions"), "{report}");
    drop((y, gpu));
    let gpu = Gpu::new(MISTAKES);
    let mut y = gpu.stream.clone_htod(&[0f32, 0.0, 1.0, 1.0]).unwrap();
    launch!(gpu, "trap", blocks(1, 4, 0), &mut y).unwrap();
    let (_, report) = found(&gpu);
    assert!(report.contains("thread (2, 0, 0): the kernel trapped"), "{report}");
}

#[test]
fn a_result_that_hangs_on_the_order_of_threads_differs() {
    let [forwards, backwards] = [false, true].map(|reversed| {
        let gpu = Gpu::new(MISTAKES);
        gpu.session.set_reversed(reversed);
        let mut y = gpu.stream.alloc_zeros::<i32>(1).unwrap();
        launch!(gpu, "last_wins", blocks(1, 64, 0), &mut y).unwrap();
        gpu.stream.clone_dtoh(&y).unwrap()[0]
    });
    assert_eq!((forwards, backwards), (63, 0));
}

#[test]
fn blocks_that_race_in_global_memory() {
    for (kernel, how) in [("blocks_add", "another block"), ("blocks_shift", "another block")] {
        let gpu = Gpu::new(MISTAKES);
        gpu.session.set_races(true);
        let mut y = gpu.stream.alloc_zeros::<f32>(64).unwrap();
        let x = gpu.stream.clone_htod(&[1f32; 64]).unwrap();
        let mut launch = |blocks_count, n: i32| match kernel {
            "blocks_add" => launch!(gpu, kernel, blocks(blocks_count, 32, 0), &mut y, &x, &n).unwrap(),
            _ => launch!(gpu, kernel, blocks(blocks_count, 32, 0), &mut y, &n).unwrap(),
        };
        // One block does not race with itself, nor one launch with another.
        launch(1, 32);
        launch(1, 32);
        gpu.stream.synchronize().unwrap();
        launch(2, 64);
        let (error, report) = found(&gpu);
        assert_eq!(error, "CUDA_ERROR_LAUNCH_FAILED");
        assert!(report.contains("race of blocks in global memory") && report.contains(how), "{report}");
    }
    let gpu = Gpu::new(MISTAKES);
    gpu.session.set_races(true);
    let mut y = gpu.stream.alloc_zeros::<i32>(1).unwrap();
    let x = gpu.stream.clone_htod(&[1i32; 64]).unwrap();
    launch!(gpu, "blocks_agree", blocks(2, 32, 0), &mut y, &x, &64i32).unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&y).unwrap(), [1]);
    assert!(gpu.session.reports().is_empty());
}
