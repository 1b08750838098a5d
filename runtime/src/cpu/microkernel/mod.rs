//! The innermost loop of a product: a few rows of the left matrix times a panel of columns of the right one.
//!
//! The sums of a tile stay in vector registers while the loop runs over the common extent. The left matrix is read where it
//! lies, an element at a time for all lanes; the panel holds [`WIDTH`] columns, row after row (Goto & van de Geijn 2008,
//! without their packing of the left matrix: reading its elements by broadcast costs no more than reading a packed copy).

#[cfg(target_arch = "x86_64")]
mod x86;

use super::vector;

/// Columns of a panel.
pub const WIDTH: usize = 32;

/// The most rows of a tile.
pub const HEIGHT: usize = 12;

/// Lanes of a vector: half of a panel's columns.
pub const LANES: usize = WIDTH / 2;

/// A tile of sums.
pub type Tile = [[f32; WIDTH]; HEIGHT];

/// Some rows of the left matrix.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The first element.
    pub start: *const f32,
    /// How many rows, up to [`HEIGHT`].
    pub count: usize,
    /// Elements from row to row.
    pub row: usize,
    /// Elements from column to column.
    pub column: usize,
}

/// Some columns of the right matrix.
#[derive(Clone, Copy)]
pub struct Panel<'a> {
    /// The two vectors of its first row.
    pub halves: [*const f32; 2],
    /// How far from there those of each row are.
    pub rows: &'a [usize],
}

impl Panel<'static> {
    /// Up to 256 rows of [`WIDTH`] elements, one after the other.
    pub fn packed(start: *const f32, depth: usize) -> Self {
        static ROWS: [usize; 256] = {
            let mut rows = [0; 256];
            let mut k = 0;
            while k < rows.len() {
                rows[k] = k * WIDTH;
                k += 1;
            }
            rows
        };
        Panel { halves: [start, start.wrapping_add(LANES)], rows: &ROWS[..depth] }
    }
}

/// `tile = rows * panel` in the first `width` columns at least.
///
/// # Safety
/// `rows` has as many columns as the panel rows, and all elements of both are readable; of the panel, those of the second half
/// only where `width` is more than [`LANES`].
pub unsafe fn multiply(rows: Rows, panel: Panel, width: usize, tile: &mut Tile) {
    // SAFETY: as the caller promised; a tile has room for all.
    unsafe { multiply_onto(rows, panel, width, onto(tile)) }
}

/// Where sums go: rows of [`WIDTH`] elements, of which the second half is written only where it is asked for.
#[derive(Clone, Copy)]
pub struct Sums {
    /// The first element.
    pub start: *mut f32,
    /// Elements from row to row.
    pub row: usize,
    /// Whether they are added to what is there.
    pub adds: bool,
}

/// A tile as a place for sums.
fn onto(tile: &mut Tile) -> Sums {
    Sums { start: tile.as_mut_ptr().cast(), row: WIDTH, adds: false }
}

/// As [`multiply`], with the sums at another place.
///
/// # Safety
/// As [`multiply`]; and the sums' rows may be written, as far as `width` asks for them, and read where they are added to.
pub unsafe fn multiply_onto(rows: Rows, panel: Panel, width: usize, sums: Sums) {
    debug_assert!((1..=HEIGHT).contains(&rows.count));
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions; the caller promised the rest.
            return unsafe { x86::multiply_avx512(rows, panel, width, sums) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { x86::multiply_avx2(rows, panel, width, sums) };
        }
    }
    // SAFETY: as the caller promised.
    unsafe { multiply_portably(rows, panel, width, sums) }
}

/// For processors without a kernel of their own: left to the compiler.
unsafe fn multiply_portably(rows: Rows, panel: Panel, width: usize, to: Sums) {
    for i in 0..rows.count {
        for (half, first) in panel.halves.iter().zip([0, LANES]).take(width.div_ceil(LANES)) {
            let mut sums = [0.0; LANES];
            for (k, offset) in panel.rows.iter().enumerate() {
                // SAFETY: within the rows and the panel, as the caller promised.
                let (x, row) = unsafe {
                    (*rows.start.add(i * rows.row + k * rows.column), &*half.add(*offset).cast::<[f32; LANES]>())
                };
                sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
            }
            // SAFETY: as the caller promised.
            unsafe { store(to.start.add(i * to.row + first), 1, &sums, to.adds) };
        }
    }
}

/// Rows whose dot products are computed together: so many sums, in vectors, stay in the registers.
pub const DOTS: usize = 4;

/// The dot product of every one of [`DOTS`] rows, all of one length, with each of some others.
pub fn dots<const C: usize>(left: [&[f32]; DOTS], right: [&[f32]; C]) -> [[f32; C]; DOTS] {
    let length = left[0].len();
    assert!(left.iter().chain(&right).all(|row| row.len() == length), "rows of different lengths");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions, and all rows have this length.
            return unsafe { x86::dots_avx512(left, right, length) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            return unsafe { x86::dots_avx2(left, right, length) };
        }
    }
    dots_portably(left, right)
}

/// For processors without a kernel of their own: left to the compiler.
fn dots_portably<const C: usize>(left: [&[f32]; DOTS], right: [&[f32]; C]) -> [[f32; C]; DOTS] {
    left.map(|x| right.map(|y| vector::dot(x, y)))
}

/// Writes up to [`LANES`] sums to places `step` apart, or adds them to what is there.
///
/// # Safety
/// These places may be written.
#[inline]
pub unsafe fn store(to: *mut f32, step: usize, sums: &[f32], adds: bool) {
    debug_assert!(sums.len() <= LANES);
    #[cfg(target_arch = "x86_64")]
    if sums.len() > 2 && is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the instructions; the caller promised the rest.
        match step {
            1 => return unsafe { x86::store_avx512(to, sums, adds) },
            2 => return unsafe { x86::store_every_second_avx512(to, sums, adds) },
            _ => {}
        }
    }
    for (i, sum) in sums.iter().enumerate() {
        // SAFETY: as the caller promised.
        let to = unsafe { &mut *to.add(i * step) };
        *to = if adds { *to + sum } else { *sum };
    }
}

/// Bit `i` as bit `2 i`.
#[cfg(target_arch = "x86_64")]
pub fn spread(bits: u8) -> u16 {
    let bits = u16::from(bits);
    let bits = (bits | bits << 4) & 0x0f0f;
    let bits = (bits | bits << 2) & 0x3333;
    (bits | bits << 1) & 0x5555
}

/// Four rows of four as columns.
pub fn transpose(rows: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    {
        x86::transpose(rows)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::array::from_fn(|j| std::array::from_fn(|i| rows[i][j]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        let rows: [[f32; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| (10 * i + j) as f32));
        for (i, row) in transpose(rows).iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                assert_eq!(*x, (10 * j + i) as f32);
            }
        }
    }

    /// Sums go to their places and nowhere else, whatever the step and how many there are.
    #[test]
    fn stores() {
        for step in 1..=3 {
            for count in (1..=LANES).step_by(if cfg!(miri) { 5 } else { 1 }) {
                for adds in [false, true] {
                    let sums: Vec<f32> = (1..=count).map(|i| i as f32).collect();
                    let mut got = vec![0.5; LANES * step + 1];
                    let mut expected = got.clone();
                    for (i, sum) in sums.iter().enumerate() {
                        expected[i * step] = if adds { 0.5 + sum } else { *sum };
                    }
                    // SAFETY: the vector has all of these places.
                    unsafe { store(got.as_mut_ptr(), step, &sums, adds) };
                    assert_eq!(got, expected, "{count} sums {step} apart, {adds}");
                }
            }
        }
    }

    /// Every kernel that this processor has gives the same sums, up to rounding.
    #[test]
    fn kernels_agree() {
        let depth = if cfg!(miri) { 3 } else { 37 };
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let left: Vec<f32> = (0..HEIGHT * depth).map(value).collect();
        let panel: Vec<f32> = (0..depth * WIDTH).map(|i| value(i + 5)).collect();
        for count in (1..=HEIGHT).step_by(if cfg!(miri) { HEIGHT - 1 } else { 1 }) {
            let rows = Rows { start: left.as_ptr(), count, row: depth, column: 1 };
            let mut expected = [[0.0; WIDTH]; HEIGHT];
            // SAFETY: both slices have that many elements.
            unsafe { multiply_portably(rows, Panel::packed(panel.as_ptr(), depth), WIDTH, onto(&mut expected)) };
            let check = |tile: Tile, width: usize| {
                for (row, expected) in tile.iter().zip(&expected) {
                    let mut pairs = row.iter().zip(expected).take(width);
                    assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-4), "{count} rows");
                }
            };
            for width in [WIDTH, WIDTH / 2] {
                let mut tile = [[0.0; WIDTH]; HEIGHT];
                // SAFETY: as above.
                unsafe { multiply(rows, Panel::packed(panel.as_ptr(), depth), width, &mut tile) };
                check(tile, width);
            }
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let mut tile = [[0.0; WIDTH]; HEIGHT];
                // SAFETY: as above, and the processor has the instructions.
                unsafe { x86::multiply_avx2(rows, Panel::packed(panel.as_ptr(), depth), WIDTH, onto(&mut tile)) };
                check(tile, WIDTH);
            }
        }
    }

    /// Every kernel that this processor has gives the dot products, whatever is left after the last whole vector.
    #[test]
    fn dots_agree() {
        let value = |i: usize| ((i * 7919 + 13) % 101) as f32 / 50.0 - 1.0;
        let lengths: &[usize] = if cfg!(miri) { &[0, 17] } else { &[0, 1, 7, 8, 15, 16, 17, 40, 133] };
        for &length in lengths {
            let rows: Vec<Vec<f32>> = (0..2 * DOTS).map(|i| (i..i + length).map(value).collect()).collect();
            let left: [&[f32]; DOTS] = std::array::from_fn(|i| &rows[i][..]);
            let right: [&[f32]; DOTS] = std::array::from_fn(|i| &rows[DOTS + i][..]);
            let check = |sums: [[f32; DOTS]; DOTS]| {
                for (sums, left) in sums.iter().zip(left) {
                    for (sum, right) in sums.iter().zip(right) {
                        let expected: f64 = left.iter().zip(right).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                        assert!((f64::from(*sum) - expected).abs() < 1e-4, "{sum} is not {expected}");
                    }
                }
            };
            check(dots(left, right));
            check(dots_portably(left, right));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the processor has the instructions, and the rows this length.
                check(unsafe { x86::dots_avx2(left, right, length) });
            }
            // One by one, they are the same bits.
            let all = dots(left, right);
            for (j, right) in right.into_iter().enumerate() {
                assert_eq!(dots(left, [right]).map(|[dot]| dot), all.map(|dots| dots[j]));
            }
        }
    }
}
