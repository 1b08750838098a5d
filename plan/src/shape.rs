//! Element types, shapes and the types of values.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an element of a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 single precision, 4 bytes.
    F32,
    /// Signed 32-bit integer, 4 bytes: class indices.
    I32,
    /// Byte: pixels, and indices within a pooling window.
    U8,
}

impl DType {
    /// The types that an input may be declared with, by name.
    pub const NAMES: &[(&str, DType)] = &[("f32", DType::F32), ("i32", DType::I32), ("u8", DType::U8)];

    /// Bytes of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            DType::F32 | DType::I32 => 4,
            DType::U8 => 1,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::I32 => "i32",
            DType::U8 => "u8",
        })
    }
}

/// The extents of a tensor, outermost first, as PyTorch writes them. The batch is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shape(pub Vec<u64>);

impl Shape {
    /// A shape of these extents.
    pub fn new(extents: &[u64]) -> Self {
        Shape(extents.to_vec())
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements, or `None` where it passes 64 bits.
    pub fn elements(&self) -> Option<u64> {
        let mut product: u64 = 1;
        for &extent in &self.0 {
            product = product.checked_mul(extent)?;
        }
        Some(product)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, extent) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{extent}")?;
        }
        f.write_str("]")
    }
}

/// The type of a value in the network: what its elements are, its shape for one sample, and whether there is one such
/// tensor per sample (as for everything computed from an input) or one for all (a `parameter` used as a value).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueType {
    /// The element type.
    pub dtype: DType,
    /// The shape of one sample.
    pub shape: Shape,
    /// Whether the batch multiplies it.
    pub batched: bool,
}

impl ValueType {
    /// One `f32` tensor of `shape` per sample.
    pub fn f32(shape: &[u64]) -> Self {
        ValueType { dtype: DType::F32, shape: Shape::new(shape), batched: true }
    }

    /// Elements of one sample. Types in a [`Graph`](crate::graph::Graph) were checked to stay within 64 bits.
    pub fn elements(&self) -> u64 {
        self.shape.elements().expect("the graph builder checks every shape")
    }

    /// The size of the whole tensor in bytes.
    pub fn size(&self) -> Size {
        Size::per_batch(self.batched, self.elements() * self.dtype.bytes())
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// A number of bytes that depends on the batch: `min(fixed + per_sample * batch, limit)`.
///
/// Sizes stay symbolic so that one lowering serves every batch: the question "which batch fits?" costs a placement each,
/// not a compilation each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Bytes whatever the batch.
    pub fixed: u64,
    /// Bytes for each sample of the batch.
    pub per_sample: u64,
    /// No more than this.
    pub limit: u64,
}

impl Size {
    /// The same for every batch.
    pub const fn fixed(bytes: u64) -> Self {
        Size { fixed: bytes, per_sample: 0, limit: u64::MAX }
    }

    /// In proportion to the batch.
    pub const fn per_sample(bytes: u64) -> Self {
        Size { fixed: 0, per_sample: bytes, limit: u64::MAX }
    }

    /// `bytes` for each sample if `batched`, else once.
    pub const fn per_batch(batched: bool, bytes: u64) -> Self {
        if batched { Size::per_sample(bytes) } else { Size::fixed(bytes) }
    }

    /// With so many bytes more, whatever the batch.
    pub const fn plus(self, bytes: u64) -> Self {
        Size {
            fixed: self.fixed.saturating_add(bytes),
            per_sample: self.per_sample,
            limit: self.limit.saturating_add(bytes),
        }
    }

    /// No bytes.
    pub const ZERO: Size = Size::fixed(0);

    /// The bytes at a batch, or `None` where they pass 64 bits.
    pub fn bytes(self, batch: u64) -> Option<u64> {
        if self.per_sample == 0 {
            return Some(self.fixed.min(self.limit));
        }
        match self.per_sample.checked_mul(batch).and_then(|b| b.checked_add(self.fixed)) {
            Some(bytes) => Some(bytes.min(self.limit)),
            None if self.limit < u64::MAX => Some(self.limit),
            None => None,
        }
    }
}
