//! A stand-in for the few functions of cuBLAS that Plimsoll calls. The products run in `plimsoll-emulator`, which must be loaded in the
//! driver's place; this library looks it up as cuBLAS looks up the driver.
//!
//! It proves that a product is asked for rightly: sizes, strides, transposition, bounds, and that what it reads was written. It does not
//! prove cuBLAS's rounding, nor its speed: the sum runs from first to last, where cuBLAS has many orders.
//!
//! A workspace that was handed over holds nothing after a product. A handle that was handed none takes memory of its own from the
//! device, which the accounts show; one that was handed a workspace of no bytes does without.
#![cfg(target_os = "linux")]

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_NOW};

const SUCCESS: c_uint = 0;
const NOT_INITIALIZED: c_uint = 1;
const ALLOC_FAILED: c_uint = 3;
const INVALID_VALUE: c_uint = 7;
const EXECUTION_FAILED: c_uint = 13;

/// The bytes that a handle takes when it was handed none, as cuBLAS's default before Hopper.
const OWN_WORKSPACE: usize = 4 << 20;

/// 12.4.5, as `cublasGetVersion` gives it.
const VERSION: c_int = 120_405;

/// A handle.
#[derive(Debug, Default)]
pub struct Context {
    stream: usize,
    /// The workspace that was handed over.
    workspace: Option<(u64, usize)>,
    /// Memory that the handle took itself.
    own: u64,
    math_mode: c_uint,
    pointer_mode: c_uint,
}

/// `Gemm` and `Matrix` of the emulator.
#[repr(C)]
struct Matrix {
    address: u64,
    leading: i64,
    stride: i64,
    transposed: c_int,
}

#[repr(C)]
struct Gemm {
    m: i64,
    n: i64,
    k: i64,
    batch: i64,
    alpha: f32,
    beta: f32,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    workspace: u64,
    workspace_bytes: usize,
}

/// What this library needs of the driver.
struct Driver {
    gemm: unsafe extern "C" fn(*const Gemm) -> c_uint,
    allocate: unsafe extern "C" fn(*mut u64, usize) -> c_uint,
    free: extern "C" fn(u64) -> c_uint,
    current: unsafe extern "C" fn(*mut *mut c_void) -> c_uint,
}

fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            // SAFETY: nothing runs when the library is loaded, and the functions have these types.
            unsafe {
                let library: &Library = Box::leak(Box::new(Library::open(Some("libcuda.so"), RTLD_NOW).ok()?));
                Some(Driver {
                    gemm: *library.get("emulator_gemm").ok()?,
                    allocate: *library.get("cuMemAlloc_v2").ok()?,
                    free: *library.get("cuMemFree_v2").ok()?,
                    current: *library.get("cuCtxGetCurrent").ok()?,
                })
            }
        })
        .as_ref()
}

/// The handle behind a pointer.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`, and no other call uses it at the same time.
unsafe fn open<'a>(handle: *mut Context) -> Result<&'a mut Context, c_uint> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_mut() }.ok_or(NOT_INITIALIZED)
}

fn status(result: Result<(), c_uint>) -> c_uint {
    result.err().unwrap_or(SUCCESS)
}

/// Makes a handle, for the thread's context.
///
/// # Safety
/// `handle` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(handle: *mut *mut Context) -> c_uint {
    let Some(driver) = driver() else { return NOT_INITIALIZED };
    let mut current = std::ptr::null_mut();
    // SAFETY: there is room.
    if unsafe { (driver.current)(&mut current) } != 0 || current.is_null() {
        return NOT_INITIALIZED;
    }
    if handle.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: as the caller promises.
    unsafe { handle.write(Box::into_raw(Box::default())) };
    SUCCESS
}

/// Ends a handle.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasDestroy_v2(handle: *mut Context) -> c_uint {
    if handle.is_null() {
        return NOT_INITIALIZED;
    }
    // SAFETY: as the caller promises.
    let context = unsafe { Box::from_raw(handle) };
    if let (Some(driver), true) = (driver(), context.own != 0) {
        (driver.free)(context.own);
    }
    SUCCESS
}

/// Changes the stream; a workspace that was handed over is forgotten, as in cuBLAS.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetStream_v2(handle: *mut Context, stream: *mut c_void) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle) }.map(|context| {
        context.stream = stream as usize;
        context.workspace = None;
    }))
}

/// The stream.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`; `stream` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetStream_v2(handle: *mut Context, stream: *mut *mut c_void) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle).and_then(|context| give(stream, context.stream as *mut c_void)) })
}

/// Hands a workspace over.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetWorkspace_v2(handle: *mut Context, workspace: *mut c_void, bytes: usize) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle) }.and_then(|context| {
        // cuBLAS asks for at least 256 bytes of alignment.
        if !(workspace as usize).is_multiple_of(256) || (workspace.is_null() && bytes > 0) {
            return Err(INVALID_VALUE);
        }
        context.workspace = Some((workspace as u64, bytes));
        Ok(())
    }))
}

/// Changes how products may round.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetMathMode(handle: *mut Context, mode: c_uint) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle) }.and_then(|context| {
        if !matches!(mode & 0xf, 0..=3) {
            return Err(INVALID_VALUE);
        }
        context.math_mode = mode;
        Ok(())
    }))
}

/// How products may round.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`; `mode` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetMathMode(handle: *mut Context, mode: *mut c_uint) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle).and_then(|context| give(mode, context.math_mode)) })
}

/// Whether factors lie on the host, which is all that is supported.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetPointerMode_v2(handle: *mut Context, mode: c_uint) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle) }.and_then(|context| {
        context.pointer_mode = mode;
        if mode == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    }))
}

/// Where factors lie.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`; `mode` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetPointerMode_v2(handle: *mut Context, mode: *mut c_uint) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle).and_then(|context| give(mode, context.pointer_mode)) })
}

/// Whether sums may run in any order; here they run in one.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetAtomicsMode(handle: *mut Context, _mode: c_uint) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { open(handle) }.map(|_| ()))
}

/// The version.
///
/// # Safety
/// `version` is null or points to room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetVersion_v2(_handle: *mut Context, version: *mut c_int) -> c_uint {
    // SAFETY: as the caller promises.
    status(unsafe { give(version, VERSION) })
}

/// The name of a status.
#[unsafe(no_mangle)]
pub extern "C" fn cublasGetStatusName(status: c_uint) -> *const c_char {
    let name = match status {
        SUCCESS => c"CUBLAS_STATUS_SUCCESS",
        NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
        ALLOC_FAILED => c"CUBLAS_STATUS_ALLOC_FAILED",
        INVALID_VALUE => c"CUBLAS_STATUS_INVALID_VALUE",
        EXECUTION_FAILED => c"CUBLAS_STATUS_EXECUTION_FAILED",
        _ => c"CUBLAS_STATUS_UNKNOWN",
    };
    name.as_ptr()
}

/// `c = alpha * op(a) * op(b) + beta * c`.
///
/// # Safety
/// `handle` is null or comes from `cublasCreate_v2`; `alpha` and `beta` point to a number of the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSgemm_v2(
    handle: *mut Context,
    transpose_a: c_uint,
    transpose_b: c_uint,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    a: u64,
    lda: c_int,
    b: u64,
    ldb: c_int,
    beta: *const f32,
    c: u64,
    ldc: c_int,
) -> c_uint {
    // SAFETY: as the caller promises.
    unsafe {
        cublasSgemmStridedBatched(
            handle,
            transpose_a,
            transpose_b,
            m,
            n,
            k,
            alpha,
            a,
            lda,
            0,
            b,
            ldb,
            0,
            beta,
            c,
            ldc,
            0,
            1,
        )
    }
}

/// A batch of products, whose matrices lie at even distances.
///
/// # Safety
/// As for `cublasSgemm_v2`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSgemmStridedBatched(
    handle: *mut Context,
    transpose_a: c_uint,
    transpose_b: c_uint,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    a: u64,
    lda: c_int,
    stride_a: c_longlong,
    b: u64,
    ldb: c_int,
    stride_b: c_longlong,
    beta: *const f32,
    c: u64,
    ldc: c_int,
    stride_c: c_longlong,
    batch: c_int,
) -> c_uint {
    // SAFETY: as the caller promises.
    let run = unsafe { open(handle) }.and_then(|context| {
        let driver = driver().ok_or(NOT_INITIALIZED)?;
        if alpha.is_null() || beta.is_null() {
            return Err(INVALID_VALUE);
        }
        let matrix = |address, leading: c_int, stride, transposed: c_uint, rows: c_int, columns: c_int| {
            let held = if transposed == 0 { rows } else { columns };
            match transposed <= 2 && leading >= held.max(1) {
                true => Ok(Matrix { address, leading: leading.into(), stride, transposed: (transposed != 0).into() }),
                false => Err(INVALID_VALUE),
            }
        };
        if m < 0 || n < 0 || k < 0 || batch < 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: as the caller promises.
        let (alpha, beta) = unsafe { (*alpha, *beta) };
        let (workspace, workspace_bytes) = context.workspace(driver)?;
        let gemm = Gemm {
            m: m.into(),
            n: n.into(),
            k: k.into(),
            batch: batch.into(),
            alpha,
            beta,
            a: matrix(a, lda, stride_a, transpose_a, m, k)?,
            b: matrix(b, ldb, stride_b, transpose_b, k, n)?,
            c: matrix(c, ldc, stride_c, 0, m, n)?,
            workspace,
            workspace_bytes,
        };
        // SAFETY: the fields are those of the emulator's own type.
        match unsafe { (driver.gemm)(&gemm) } {
            0 => Ok(()),
            _ => Err(EXECUTION_FAILED),
        }
    });
    status(run)
}

impl Context {
    /// The workspace that was handed over, or memory of the handle's own.
    fn workspace(&mut self, driver: &Driver) -> Result<(u64, usize), c_uint> {
        if let Some(workspace) = self.workspace {
            return Ok(workspace);
        }
        if self.own == 0 {
            // SAFETY: there is room for the address.
            if unsafe { (driver.allocate)(&mut self.own, OWN_WORKSPACE) } != 0 {
                self.own = 0;
                return Err(ALLOC_FAILED);
            }
        }
        Ok((self.own, OWN_WORKSPACE))
    }
}

/// # Safety
/// `to` is null or points to room for a `T`.
unsafe fn give<T>(to: *mut T, value: T) -> Result<(), c_uint> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller promises the rest.
    unsafe { to.write(value) };
    Ok(())
}
