//! Batches as callers give them: a slice, or a tuple of slices in declared order.

use plimsoll_plan::shape::DType;

use crate::element::{self, Element};

/// A slice of any element type.
#[derive(Clone, Copy, Debug)]
pub enum Slice<'a> {
    /// Of `f32`.
    F32(&'a [f32]),
    /// Of `i32`.
    I32(&'a [i32]),
    /// Of `u8`.
    U8(&'a [u8]),
}

impl<'a> Slice<'a> {
    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        match self {
            Slice::F32(_) => DType::F32,
            Slice::I32(_) => DType::I32,
            Slice::U8(_) => DType::U8,
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self {
            Slice::F32(x) => x.len(),
            Slice::I32(x) => x.len(),
            Slice::U8(x) => x.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Slice::F32(x) => element::bytes_of(x),
            Slice::I32(x) => element::bytes_of(x),
            Slice::U8(x) => x,
        }
    }
}

impl<'a, T: Element> From<&'a [T]> for Slice<'a> {
    fn from(elements: &'a [T]) -> Self {
        T::slice(elements)
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Slice<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        T::slice(elements)
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for Slice<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        T::slice(elements)
    }
}

/// The inputs of a network for one batch: a slice for one input, a tuple of slices for several, in declared order; or a
/// slice of [`Slice`]s, where their number is known only when the program runs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no batch of inputs",
    note = "a batch is a slice of `f32`, `i32` or `u8`, sample after sample, such as `&values`; several inputs are a tuple of slices"
)]
pub trait Inputs {
    /// How many there are.
    fn count(&self) -> usize;

    /// The input at `index`, which is below [`count`](Inputs::count).
    fn get(&self, index: usize) -> Slice<'_>;
}

impl Inputs for Slice<'_> {
    fn count(&self) -> usize {
        1
    }

    fn get(&self, _index: usize) -> Slice<'_> {
        *self
    }
}

impl Inputs for [Slice<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Slice<'_> {
        self[index]
    }
}

impl Inputs for &[Slice<'_>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, index: usize) -> Slice<'_> {
        self[index]
    }
}

macro_rules! one {
    ($([$($generics:tt)*] $slice:ty),* $(,)?) => {$(
        impl<$($generics)*> Inputs for $slice {
            fn count(&self) -> usize {
                1
            }

            fn get(&self, _index: usize) -> Slice<'_> {
                T::slice(&self[..])
            }
        }
    )*};
}

one!([T: Element] &[T], [T: Element] &Vec<T>, [T: Element, const N: usize] &[T; N]);

macro_rules! several {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Inputs),*> Inputs for ($($name,)*) {
            // What stands in a tuple may be several inputs, or none: all are counted, so that none is lost unseen.
            fn count(&self) -> usize {
                0 $(+ self.$index.count())*
            }

            fn get(&self, index: usize) -> Slice<'_> {
                let mut index = index;
                $(
                    let count = self.$index.count();
                    if index < count {
                        return self.$index.get(index);
                    }
                    index -= count;
                )*
                unreachable!("the input {index} beyond the last")
            }
        }
    };
}

several!(A 0);
several!(A 0, B 1);
several!(A 0, B 1, C 2);
several!(A 0, B 1, C 2, D 3);
several!(A 0, B 1, C 2, D 3, E 4);
several!(A 0, B 1, C 2, D 3, E 4, F 5);
