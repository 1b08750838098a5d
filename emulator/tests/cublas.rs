//! The stand-in for cuBLAS, through unmodified cudarc.
#![cfg(target_os = "linux")]

mod common;

use common::{Gpu, KERNELS};
use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N as PLAIN, CUBLAS_OP_T as TRANSPOSED};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig, sys};
use cudarc::driver::{DevicePtr, DevicePtrMut};

fn gpu() -> Gpu {
    let gpu = Gpu::new(KERNELS);
    plimsoll_emulator::load_cublas().unwrap();
    gpu
}

/// Hands a workspace over, as an application does to keep cuBLAS from taking its own.
fn hand_over(blas: &CudaBlas, address: u64, bytes: usize) -> sys::cublasStatus_t {
    // SAFETY: the handle is live.
    unsafe { sys::cublasSetWorkspace_v2(*blas.handle(), address as *mut _, bytes) }
}

#[test]
fn products_in_every_transposition() {
    let gpu = gpu();
    // SAFETY: the library is the stand-in.
    assert!(unsafe { sys::is_culib_present() });
    let blas = CudaBlas::new(gpu.stream.clone()).unwrap();
    // a = [1 2 3; 4 5 6], b = [1 0; 2 1; 0 3], column by column; a b = [5 11; 14 23].
    let (a, a_transposed) = ([1f32, 4.0, 2.0, 5.0, 3.0, 6.0], [1f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (b, b_transposed) = ([1f32, 2.0, 0.0, 0.0, 1.0, 3.0], [1f32, 0.0, 2.0, 1.0, 0.0, 3.0]);
    for (transa, a, lda) in [(PLAIN, &a, 2), (TRANSPOSED, &a_transposed, 3)] {
        for (transb, b, ldb) in [(PLAIN, &b, 3), (TRANSPOSED, &b_transposed, 2)] {
            for (beta, expected) in [(0.0, [5f32, 14.0, 11.0, 23.0]), (1.0, [105.0, 214.0, 311.0, 423.0])] {
                let [a, b] = [a, b].map(|values| gpu.stream.clone_htod(values).unwrap());
                let mut c = gpu.stream.clone_htod(&[100f32, 200.0, 300.0, 400.0]).unwrap();
                let config = GemmConfig { transa, transb, m: 2, n: 2, k: 3, alpha: 1.0, lda, ldb, beta, ldc: 2 };
                // SAFETY: the sizes are those of the matrices.
                unsafe { blas.gemm(config, &a, &b, &mut c) }.unwrap();
                assert_eq!(gpu.stream.clone_dtoh(&c).unwrap(), expected);
            }
        }
    }
}

#[test]
fn a_batch_of_products() {
    let gpu = gpu();
    let blas = CudaBlas::new(gpu.stream.clone()).unwrap();
    let a = gpu.stream.clone_htod(&[2f32, 3.0, 5.0]).unwrap();
    let b = gpu.stream.clone_htod(&[7f32]).unwrap();
    // SAFETY: it is written below.
    let mut c = unsafe { gpu.stream.alloc::<f32>(3) }.unwrap();
    let gemm =
        GemmConfig { transa: PLAIN, transb: PLAIN, m: 1, n: 1, k: 1, alpha: 2.0, lda: 1, ldb: 1, beta: 0.0, ldc: 1 };
    let config = StridedBatchedConfig { gemm, batch_size: 3, stride_a: 1, stride_b: 0, stride_c: 1 };
    // SAFETY: the sizes are those of the matrices.
    unsafe { blas.gemm_strided_batched(config, &a, &b, &mut c) }.unwrap();
    assert_eq!(gpu.stream.clone_dtoh(&c).unwrap(), [28.0, 42.0, 70.0]);
}

#[test]
fn a_workspace_keeps_the_library_from_memory_of_its_own() {
    let gpu = gpu();
    let [a, b] = [0; 2].map(|_| gpu.stream.clone_htod(&[1f32]).unwrap());
    let mut c = gpu.stream.alloc_zeros::<f32>(1).unwrap();
    let mut workspace = gpu.stream.alloc_zeros::<u8>(1024).unwrap();
    let live = || gpu.session.accounting().live_bytes;
    let before = live();
    let config =
        GemmConfig { transa: PLAIN, transb: PLAIN, m: 1, n: 1, k: 1, alpha: 1.0, lda: 1, ldb: 1, beta: 0.0, ldc: 1 };
    {
        let blas = CudaBlas::new(gpu.stream.clone()).unwrap();
        let address = workspace.device_ptr_mut(&gpu.stream).0;
        assert_eq!(hand_over(&blas, address + 8, 512), sys::cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE);
        assert_eq!(hand_over(&blas, address, 512), sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        // SAFETY: the sizes are those of the matrices.
        unsafe { blas.gemm(config, &a, &b, &mut c) }.unwrap();
        assert_eq!(live(), before);
        // What the workspace held is gone, and nothing beside it.
        assert!(gpu.stream.clone_dtoh(&workspace.slice(511..512)).is_err());
        assert!(gpu.stream.clone_dtoh(&workspace.slice(512..1024)).is_ok());
        // A new stream resets the workspace: the library takes 4 MiB.
        // SAFETY: the handle and the stream are live.
        unsafe { cudarc::cublas::result::set_stream(*blas.handle(), gpu.stream.cu_stream() as _) }.unwrap();
        // SAFETY: the sizes are those of the matrices.
        unsafe { blas.gemm(config, &a, &b, &mut c) }.unwrap();
        assert_eq!(live(), before + (4 << 20));
    }
    assert_eq!(live(), before);
}

#[test]
fn what_a_product_reads_is_checked() {
    let gpu = gpu();
    let blas = CudaBlas::new(gpu.stream.clone()).unwrap();
    let a = gpu.stream.clone_htod(&[1f32; 3]).unwrap();
    let b = gpu.stream.clone_htod(&[1f32; 4]).unwrap();
    let mut c = gpu.stream.alloc_zeros::<f32>(4).unwrap();
    let config =
        GemmConfig { transa: PLAIN, transb: PLAIN, m: 2, n: 2, k: 2, alpha: 1.0, lda: 2, ldb: 2, beta: 0.0, ldc: 2 };
    // SAFETY: the stand-in checks the sizes.
    assert!(unsafe { blas.gemm(GemmConfig { lda: 1, ..config }, &a, &b, &mut c) }.is_err());
    // SAFETY: that `a` is too small is what is tested.
    assert!(unsafe { blas.gemm(config, &a, &b, &mut c) }.is_err());
    assert!(gpu.session.reports()[0].starts_with("cuBLAS: load of 4 bytes"), "{:?}", gpu.session.reports());
    let _ = a.device_ptr(&gpu.stream);
}
