//! Changes to samples as they are loaded: by torchvision's names, with its defaults and numerics.

mod crop;
mod flip;
mod normalize;

pub use crop::RandomCrop;
pub use flip::RandomHorizontalFlip;
pub use normalize::Normalize;

use super::{Error, Random};

/// A change to a sample, given to [`Loader::transform`](super::Loader::transform).
pub trait Transform<T>: Send + Sync + 'static {
    /// The shape of the result for samples of a shape.
    ///
    /// # Errors
    /// A shape that the transform can't take, or arguments of the transform that make no sense.
    fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error>;

    /// Writes the changed sample to `output`. `shape` is that of `input`; what is random comes from `random`, which
    /// depends on the seed, the epoch and the sample alone.
    fn apply(&self, shape: &[usize], input: &[T], output: &mut [T], random: &mut Random);
}

/// Height and width: the last two sizes of a shape.
fn height_and_width(shape: &[usize], name: &str) -> Result<(usize, usize), Error> {
    match *shape {
        [.., height, width] => Ok((height, width)),
        _ => Err(Error::argument(
            format!("`{name}` can't take samples of shape {shape:?}"),
            "it is for pictures: the last two sizes are height and width",
        )),
    }
}
