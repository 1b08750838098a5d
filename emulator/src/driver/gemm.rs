//! The matrix product that the stand-in for cuBLAS asks for. It is no function of the real driver.

use std::ffi::c_int;

use rayon::prelude::*;

use super::control::ends;
use super::{Code, Driver, Needs, Status, call};
use crate::fused;
use crate::memory::uninitialized;

/// A matrix of the device, column by column, as cuBLAS has them; one of each of a batch.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Matrix {
    /// The address of the first.
    pub address: u64,
    /// Elements from the start of a column to the start of the next.
    pub leading: i64,
    /// Elements from the start of one to the start of the next.
    pub stride: i64,
    /// 1 where it is used transposed.
    pub transposed: c_int,
}

/// `c = alpha * a * b + beta * c`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Gemm {
    /// Rows of `c`.
    pub m: i64,
    /// Columns of `c`.
    pub n: i64,
    /// What the sum runs over.
    pub k: i64,
    /// How many.
    pub batch: i64,
    /// A factor of the product.
    pub alpha: f32,
    /// A factor of what `c` holds; where it is zero, `c` is not read.
    pub beta: f32,
    /// `m` by `k`.
    pub a: Matrix,
    /// `k` by `n`.
    pub b: Matrix,
    /// `m` by `n`.
    pub c: Matrix,
    /// The workspace that the library was handed.
    pub workspace: u64,
    /// The bytes of the workspace, which hold nothing afterwards.
    pub workspace_bytes: usize,
}

/// Runs a product. The sum runs over `k` from the first on, fused, in `f32`.
///
/// # Safety
/// `gemm` points to a `Gemm`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn emulator_gemm(gemm: *const Gemm) -> Status {
    call(Needs::Context, |driver| {
        // SAFETY: as the caller promises.
        let gemm = unsafe { *gemm };
        driver.global.accounting_mut().launches += 1;
        if ends(&mut driver.settings.fail_launch) {
            driver.report("a product of cuBLAS fails, as was asked for");
            return Err(Code::LaunchOutOfResources);
        }
        driver.busy = true;
        if driver.sticky.is_some() {
            return Ok(());
        }
        match run(driver, &gemm) {
            Ok(()) => Ok(()),
            Err(report) => {
                driver.report(format!("cuBLAS: {report}"));
                driver.sticky = Some(Code::IllegalAddress);
                driver.tell()
            }
        }
    })
}

fn run(driver: &mut Driver, gemm: &Gemm) -> Result<(), String> {
    let &Gemm { m, n, k, alpha, beta, .. } = gemm;
    let (rows, columns, inner) = (m as usize, n as usize, k as usize);
    for batch in 0..gemm.batch {
        let a = read(driver, &gemm.a, batch, [m, k])?;
        let b = read(driver, &gemm.b, batch, [k, n])?;
        let mut c = if beta == 0.0 { vec![0.0; rows * columns] } else { read(driver, &gemm.c, batch, [m, n])? };
        // A column of c at a time: the columns of a, each with its factor of the column of b.
        c.par_chunks_mut(rows.max(1)).enumerate().for_each_init(
            || vec![0.0; rows],
            |sums, (column, c)| {
                sums.fill(0.0);
                for (a, b) in a.chunks_exact(rows).zip(&b[column * inner..]).take(inner) {
                    fused::accumulate(sums, a, *b);
                }
                c.iter_mut().zip(sums).for_each(|(c, sum)| {
                    *c = if beta == 0.0 { alpha * *sum } else { alpha * *sum + beta * *c };
                });
            },
        );
        write(driver, &gemm.c, batch, rows, &c)?;
    }
    if gemm.workspace_bytes > 0 {
        let (address, bytes) = (gemm.workspace, gemm.workspace_bytes);
        let Some((memory, offset)) = driver.global.find_mut(address, bytes) else {
            return Err(driver.global.out_of_bounds("workspace", address, bytes).to_string());
        };
        memory.mark(offset, gemm.workspace_bytes, false);
    }
    Ok(())
}

/// A matrix of the device, column by column.
fn read(driver: &Driver, matrix: &Matrix, batch: i64, [rows, columns]: [i64; 2]) -> Result<Vec<f32>, String> {
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
    places.map(|(row, column)| element(driver, matrix, batch, row, column)).collect()
}

fn element(driver: &Driver, matrix: &Matrix, batch: i64, row: i64, column: i64) -> Result<f32, String> {
    let address = address(matrix, batch, row, column);
    let Some((memory, offset)) = driver.global.find(address, 4) else {
        return Err(driver.global.out_of_bounds("load", address, 4).to_string());
    };
    if !address.is_multiple_of(4) {
        return Err(format!("a matrix at {:#x} is misaligned", matrix.address));
    }
    match memory.is_written::<4>(offset) {
        true => Ok(f32::from_bits(memory.load::<4>(offset) as u32)),
        false => Err(uninitialized(memory, offset, 4).to_string()),
    }
}

fn write(driver: &Driver, matrix: &Matrix, batch: i64, rows: usize, values: &[f32]) -> Result<(), String> {
    for (place, value) in values.iter().enumerate() {
        let address = address(matrix, batch, (place % rows) as i64, (place / rows) as i64);
        let Some((memory, offset)) = driver.global.find(address, 4) else {
            return Err(driver.global.out_of_bounds("store", address, 4).to_string());
        };
        memory.store::<4>(offset, value.to_bits().into());
    }
    Ok(())
}

fn address(matrix: &Matrix, batch: i64, row: i64, column: i64) -> u64 {
    let (row, column) = if matrix.transposed == 0 { (row, column) } else { (column, row) };
    let element = batch * matrix.stride + column * matrix.leading + row;
    matrix.address.wrapping_add((element * 4) as u64)
}
