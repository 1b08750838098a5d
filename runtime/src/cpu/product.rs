//! Products of matrices.

/// A matrix that is read: its elements lie `row` and `column` apart.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    elements: &'a [f32],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    pub fn rows(elements: &'a [f32], rows: usize, columns: usize) -> Self {
        Matrix::strided(elements, rows, columns, columns)
    }

    /// Rows whose beginnings are `row` elements apart.
    pub fn strided(elements: &'a [f32], rows: usize, columns: usize, row: usize) -> Self {
        assert!(rows == 0 || columns == 0 || (rows - 1) * row + columns <= elements.len(), "the matrix is larger");
        Matrix { elements, rows, columns, row, column: 1 }
    }

    /// Rows as columns.
    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, row: self.column, column: self.row, ..self }
    }
}

/// A matrix that is written, row by row.
pub struct MatrixMut<'a> {
    elements: &'a mut [f32],
    rows: usize,
    columns: usize,
    row: usize,
}

impl<'a> MatrixMut<'a> {
    /// Rows one after the other.
    pub fn rows(elements: &'a mut [f32], rows: usize, columns: usize) -> Self {
        assert!(rows * columns <= elements.len(), "the matrix is larger");
        MatrixMut { elements, rows, columns, row: columns }
    }
}

/// `c = a b`, or `c += a b` if it `adds`.
pub fn product(c: MatrixMut, a: Matrix, b: Matrix, adds: bool) {
    assert!(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows, "the matrices do not match");
    for i in 0..c.rows {
        for j in 0..c.columns {
            let terms =
                (0..a.columns).map(|k| a.elements[i * a.row + k * a.column] * b.elements[k * b.row + j * b.column]);
            let sum: f32 = terms.sum();
            let to = &mut c.elements[i * c.row + j];
            *to = if adds { *to + sum } else { sum };
        }
    }
}
