//! Checkpoints: the state of a network in a [safetensors](https://github.com/huggingface/safetensors) file.
//!
//! | | writes | reads |
//! |---|---|---|
//! | weights and running statistics, as PyTorch's `state_dict` has them | [`Trainer::save_weights`] | [`Trainer::load_weights`], [`Predictor::load`] |
//! | the same, with all that training needs to go on | [`Trainer::save`] | [`Trainer::load`]; the two above take it, too |
//!
//! A file is replaced in one step: whatever happens while one is written, its name stands for the old content or for the new,
//! whole. Tensors pass through a piece of memory of a fixed size, so that neither writing nor reading holds a second copy of
//! the network.
//!
//! [`Trainer::save_weights`]: crate::Trainer::save_weights
//! [`Trainer::load_weights`]: crate::Trainer::load_weights
//! [`Trainer::save`]: crate::Trainer::save
//! [`Trainer::load`]: crate::Trainer::load
//! [`Predictor::load`]: crate::Predictor::load

mod error;
mod header;
mod layout;
mod progress;
mod reader;
mod replace;
mod writer;

pub use error::{Difference, Error};
pub(crate) use layout::{Layout, Tensor};
pub(crate) use progress::Progress;
pub(crate) use reader::Reader;
pub(crate) use writer::write;

/// What tensors are carried in between device and file.
const PIECE: usize = 1 << 20;

/// Files are little-endian; so are nearly all machines. `bytes` are whole numbers of four bytes each.
fn swap_if_big_endian(bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
}
