//! Products of matrices: by cuBLAS where it is installed, else by a kernel of our own.
//!
//! cuBLAS's workspace is what the arena has to spare while the step runs, so that it is in the plan and costs nothing. Where
//! that is too little for a product, it is the kernel's.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublas::{result, sys};
use sys::cublasOperation_t::{CUBLAS_OP_N as AS_IT_IS, CUBLAS_OP_T as TRANSPOSED};
use sys::cublasStatus_t::{CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_SUPPORTED};

use super::card::Card;
use super::kernels::{Argument, Grid, Pointer};
use super::step::Step;
use crate::error::Error;

/// How a matrix lies in memory: elements from row to row, from column to column, and from matrix to matrix of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Lies {
    row: u32,
    column: u32,
    batch: u32,
}

// SAFETY: `Matrix` in `matmul.cu`.
unsafe impl Argument for Lies {}

/// A matrix, or the first of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    at: Pointer,
    lies: Lies,
}

impl Matrix {
    /// Row after row, each of so many columns.
    pub fn rows(at: Pointer, columns: u32) -> Matrix {
        Matrix { at, lies: Lies { row: columns, column: 1, batch: 0 } }
    }

    /// The same matrix with rows and columns exchanged.
    pub fn transposed(self) -> Matrix {
        let Lies { row, column, batch } = self.lies;
        Matrix { lies: Lies { row: column, column: row, batch }, ..self }
    }

    /// The first of a batch whose matrices begin so many elements apart.
    pub fn apart(self, batch: u32) -> Matrix {
        Matrix { lies: Lies { batch, ..self.lies }, ..self }
    }

    /// One of the batch, alone.
    pub fn number(self, i: u32) -> Matrix {
        Matrix { at: self.at.after(i as usize * self.lies.batch as usize), lies: Lies { batch: 0, ..self.lies } }
    }

    /// How cuBLAS sees it, whose matrices lie column after column: transposed, so that what is row after row is as it is.
    /// Also the distance between its columns, at least the `length` of one.
    fn seen(self, rows: u32, columns: u32) -> (sys::cublasOperation_t, i32) {
        match self.lies {
            Lies { row, column: 1, .. } => (AS_IT_IS, row.max(columns) as i32),
            Lies { column, .. } => (TRANSPOSED, column.max(rows) as i32),
        }
    }
}

/// `c = a b`, or `c += a b` if it `adds`; `a` has `rows` times `depth` elements, `b` `depth` times `columns`. The rows of
/// `c` are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// The left matrix.
    pub a: Matrix,
    /// The right one.
    pub b: Matrix,
    /// The result.
    pub c: Matrix,
    /// Rows of `a` and `c`.
    pub rows: u32,
    /// Columns of `b` and `c`.
    pub columns: u32,
    /// Columns of `a`, rows of `b`.
    pub depth: u32,
    /// How many such products.
    pub batches: u32,
    /// Whether it adds to `c`.
    pub adds: bool,
}

impl Product {
    /// By our own kernel.
    pub fn launch(&self, step: &Step) -> Result<(), Error> {
        const TILE: u32 = 64;
        let Product { a, b, c, rows, columns, depth, batches, adds } = *self;
        let tiles = rows.div_ceil(TILE) * columns.div_ceil(TILE);
        step.launch(
            "matmul",
            Grid::blocks(tiles, u32::MAX).times(batches),
            &[&a.at, &b.at, &c.at, &rows, &columns, &depth, &batches, &a.lies, &b.lies, &c.lies, &i32::from(adds)],
        )
    }
}

/// cuBLAS, where it is installed.
pub struct Blas {
    card: Arc<Card>,
    handle: sys::cublasHandle_t,
}

// SAFETY: the handle is used by one thread at a time, that which has the device.
unsafe impl Send for Blas {}

impl Blas {
    /// A handle, if the library is there and takes the card. It has no workspace yet.
    pub fn new(card: &Arc<Card>) -> Option<Blas> {
        // SAFETY: only looks whether a library can be loaded. Without one, every other call would panic.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let blas = Blas { card: Arc::clone(card), handle: result::create_handle().ok()? };
        // SAFETY: handle and stream are alive. The workspace comes last: setting the stream would undo it.
        unsafe {
            result::set_stream(blas.handle, card.stream().cast()).ok()?;
            sys::cublasSetWorkspace_v2(blas.handle, std::ptr::null_mut(), 0).result().ok()?;
        }
        Some(blas)
    }

    /// Starts a product in a workspace. Gives `false` where cuBLAS would need a larger one. `name` says what for, in an error.
    pub fn product(
        &self,
        product: &Product,
        (workspace, bytes): (Pointer, usize),
        name: impl FnOnce() -> String,
    ) -> Result<bool, Error> {
        let failed = |doing: &str, status: sys::cublasStatus_t, name: String| Error::Device {
            device: self.card.name().to_string(),
            message: format!("{name}: {doing}: {status:?}"),
        };
        // SAFETY: the handle is alive, and nothing else is in the workspace while the step runs.
        let handed = unsafe { sys::cublasSetWorkspace_v2(self.handle, workspace.0 as *mut c_void, bytes).result() };
        if let Err(error) = handed {
            return Err(failed("handing cuBLAS its workspace", error.0, name()));
        }
        let Product { a, b, c, rows, columns, depth, batches, adds } = *product;
        let (of_a, a_apart) = a.seen(rows, depth);
        let (of_b, b_apart) = b.seen(depth, columns);
        let (one, beta) = (1.0f32, if adds { 1.0f32 } else { 0.0 });
        let [m, n, k, c_apart] = [columns, rows, depth, c.lies.row.max(columns)].map(|x| x as i32);
        let [pa, pb] = [a.at, b.at].map(|at| at.0 as *const f32);
        let pc = c.at.0 as *mut f32;
        // Column after column, the product is that of the transposed matrices: c^T = b^T a^T.
        // SAFETY: the matrices lie in the arena, where the plan gives the step its operands.
        let done = unsafe {
            if batches == 1 {
                result::sgemm(self.handle, of_b, of_a, m, n, k, &one, pb, b_apart, pa, a_apart, &beta, pc, c_apart)
            } else {
                let [sa, sb, sc] = [a, b, c].map(|matrix| i64::from(matrix.lies.batch));
                result::sgemm_strided_batched(
                    self.handle,
                    of_b,
                    of_a,
                    m,
                    n,
                    k,
                    &one,
                    pb,
                    b_apart,
                    sb,
                    pa,
                    a_apart,
                    sa,
                    &beta,
                    pc,
                    c_apart,
                    sc,
                    batches as i32,
                )
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(error) if [CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_NOT_SUPPORTED].contains(&error.0) => Ok(false),
            Err(error) => Err(failed("a product of matrices by cuBLAS", error.0, name())),
        }
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if self.card.bind().is_ok() {
            // SAFETY: nobody else has the handle.
            let _ = unsafe { result::destroy_handle(self.handle) };
        }
    }
}
