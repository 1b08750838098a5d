//! Runs a kernel of the tests through unmodified cudarc.
#![allow(dead_code)]

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule, CudaStream, DriverError, LaunchConfig};
use cudarc::nvrtc::Ptx;
use plimsoll_emulator::Session;

/// Kernels that are right.
pub const KERNELS: &str = include_str!("../kernels/kernels.ptx");
/// Kernels that each do one thing wrong.
pub const MISTAKES: &str = include_str!("../kernels/mistakes.ptx");

/// A session with a context, a stream and a module.
pub struct Gpu {
    pub module: Arc<CudaModule>,
    pub stream: Arc<CudaStream>,
    pub context: Arc<CudaContext>,
    // The last to go.
    pub session: Session,
}

impl Gpu {
    pub fn new(source: &str) -> Gpu {
        let session = plimsoll_emulator::session().unwrap();
        let context = CudaContext::new(0).unwrap();
        let stream = context.default_stream();
        let module = context.load_module(Ptx::from_src(source)).unwrap();
        Gpu { module, stream, context, session }
    }
}

/// Blocks along x, of as many threads, with as many bytes of shared memory.
pub fn blocks(blocks: u32, threads: u32, shared_mem_bytes: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes }
}

/// The name of an error.
pub fn name(error: &DriverError) -> String {
    error.error_name().unwrap().to_str().unwrap().to_owned()
}

/// Launches a kernel of a module: `launch!(gpu, "axpy", blocks(1, 32, 0), &mut y, &x, &a, &n)`.
#[macro_export]
macro_rules! launch {
    ($gpu:expr, $kernel:expr, $config:expr, $($argument:expr),*) => {{
        use cudarc::driver::PushKernelArg;
        let function = $gpu.module.load_function($kernel).unwrap();
        let (mut builder, config) = ($gpu.stream.launch_builder(&function), $config);
        // A match, for arguments may be temporary.
        match builder$(.arg($argument))* {
            // SAFETY: the arguments are those of the kernel.
            builder => unsafe { builder.launch(config) }.map(|_| ()),
        }
    }};
}
