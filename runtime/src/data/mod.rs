//! Training data: readers, transforms, a loader that prepares batches on other threads, and downloads.
//!
//! ```
//! # use plimsoll_runtime as plimsoll;
//! use plimsoll::data::{self, Dataset, Loader};
//!
//! # fn main() -> Result<(), data::Error> {
//! let digits = data::digits()?;                                     // 8 x 8 pixels, embedded in the library
//! let mut loader = Loader::new(digits.train.to_tensor(), 32)?.shuffle(42);
//! for batch in loader.epoch() {
//!     let batch = batch?;
//!     let (inputs, targets): (&[f32], &[i32]) = (batch.inputs(), batch.targets());
//!     assert_eq!(inputs.len(), 64 * targets.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | What | How |
//! |---|---|
//! | handwritten digits, embedded | [`digits()`] |
//! | MNIST, Fashion-MNIST | [`Mnist::load`], [`FashionMnist::load`] |
//! | CIFAR-10, CIFAR-100 | [`Cifar10::load`], [`Cifar100::load`] |
//! | the same, downloaded | `Mnist::download` and so on, with the feature `download` |
//! | a folder of pictures | `ImageFolder::open`, with the feature `image-folder` |
//! | what you have in memory | [`TensorDataset::new`] for numbers, [`Images::new`] for pictures |
//! | anything else | an implementation of [`Dataset`] |
//! | a part of a dataset | [`Subset`], [`train_test_split`] |
//! | floats in [0, 1] | [`Dataset::to_tensor`] |
//! | random changes, normalization | [`Loader::transform`] with [`RandomCrop`], [`RandomHorizontalFlip`], [`Normalize`] |
//!
//! Pictures may also stay bytes, a quarter of the memory, and be normalized by the network's own `normalize` layer.
//!
//! Two features are off by default, to keep the usual build small: `download` (HTTPS, a progress bar) and `image-folder`
//! (PNG and JPEG, and pictures of samples).

mod archive;
mod bytes;
mod cifar;
mod cifar_names;
mod dataset;
mod digits;
#[cfg(feature = "download")]
pub mod download;
mod error;
mod handoff;
mod idx;
#[cfg(feature = "image-folder")]
mod image_folder;
mod images;
mod loader;
mod mnist;
#[cfg(feature = "image-folder")]
mod picture;
mod pool;
mod random;
#[cfg(feature = "image-folder")]
mod samples_png;
mod subset;
mod tensor_dataset;
mod to_tensor;
mod transform;
mod worker;

pub use cifar::{Cifar10, Cifar100};
pub use dataset::{Dataset, Split};
pub use digits::digits;
pub use error::Error;
pub use idx::Idx;
#[cfg(feature = "image-folder")]
pub use image_folder::{Colour, ImageFolder};
pub use images::Images;
pub use loader::{Epoch, Loader};
pub use mnist::{FashionMnist, Mnist};
pub use pool::Batch;
pub use random::Random;
#[cfg(feature = "image-folder")]
pub use samples_png::{Shade, write_samples_png};
pub use subset::{Subset, train_test_split};
pub use tensor_dataset::TensorDataset;
pub use to_tensor::ToTensor;
pub use transform::{Normalize, RandomCrop, RandomHorizontalFlip, Transform};
