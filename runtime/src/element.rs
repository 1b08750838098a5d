//! Rust types of tensor elements, and their bytes.

use plimsoll_plan::shape::DType;

use crate::inputs::Slice;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for i32 {}
    impl Sealed for u8 {}
}

/// A type of tensor elements: `f32`, `i32` or `u8`.
///
/// Implementors have no padding and take every pattern of bits, which is what makes the conversions below sound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of a tensor",
    note = "elements are `f32`, `i32` and `u8`; rows such as `[f32; 2]` become one slice of `f32` by `rows.as_flattened()`"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The planner's name for it.
    const DTYPE: DType;

    /// A slice of these as a slice of any element type.
    fn slice(elements: &[Self]) -> Slice<'_>;
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;

    fn slice(elements: &[f32]) -> Slice<'_> {
        Slice::F32(elements)
    }
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;

    fn slice(elements: &[i32]) -> Slice<'_> {
        Slice::I32(elements)
    }
}

impl Element for u8 {
    const DTYPE: DType = DType::U8;

    fn slice(elements: &[u8]) -> Slice<'_> {
        Slice::U8(elements)
    }
}

/// The bytes of elements, in the machine's order.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, and every byte is a valid `u8` of alignment 1.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of elements, to be written.
pub fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; whatever is written is a valid element.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}
