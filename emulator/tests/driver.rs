//! The driver's functions, through unmodified cudarc.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

#[test]
fn a_kernel_runs() {
    let session = plimsoll_emulator::session().unwrap();
    let context = CudaContext::new(0).unwrap();
    let stream: Arc<CudaStream> = context.default_stream();
    let module = context.load_module(Ptx::from_src(include_str!("kernels/kernels.ptx"))).unwrap();
    let axpy = module.load_function("axpy").unwrap();
    let x = stream.clone_htod(&(0..1000).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
    let mut y = stream.clone_htod(&vec![1f32; 1000]).unwrap();
    let mut launch = stream.launch_builder(&axpy);
    let (a, n) = (2f32, 1000i32);
    launch.arg(&mut y).arg(&x).arg(&a).arg(&n);
    // SAFETY: the arguments are those of the kernel.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1000)) }.unwrap();
    let y = stream.clone_dtoh(&y).unwrap();
    assert!(y.iter().enumerate().all(|(i, y)| *y == 1.0 + 2.0 * i as f32), "{y:?}");
    assert_eq!(session.reports(), Vec::<String>::new());
    assert_eq!(session.accounting().launches, 1);
}
