//! Writes a checkpoint.

use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorInfo};

use super::header::Header;
use super::replace::replace;
use super::{Error, Layout, PIECE, Progress, Tensor, swap_if_big_endian};
use crate::device::Device;
use crate::session::Session;

/// Writes the weights and, where `progress` is given, all that training needs to go on. `batches` is what PyTorch's counters
/// of batches have.
pub(crate) fn write<D: Device>(
    path: &Path,
    session: &mut Session<D>,
    layout: &Layout,
    batches: u64,
    progress: Option<&Progress>,
) -> Result<(), crate::Error> {
    if let Some(name) = layout.name_twice() {
        let (network, name) = (layout.network.clone(), name.to_string());
        return Err(Error::NameTwice { network, name }.into());
    }
    let mut tensors: Vec<&Tensor> = layout.weights.iter().collect();
    if let Some(progress) = progress {
        tensors.extend(&layout.optimizer);
        // Those that an update has used are zero.
        tensors.extend(layout.gradients.iter().filter(|_| progress.is_between_updates()));
    }
    let header =
        header(layout, &tensors, progress).to_bytes().map_err(|error| Error::io(path, "write")(error.into()))?;
    replace(path, |file| {
        let mut put = |bytes: &[u8]| file.write_all(bytes).map_err(Error::io(path, "write"));
        put(&(header.len() as u64).to_le_bytes())?;
        put(&header)?;
        for _ in &layout.counters {
            put(&batches.to_le_bytes())?;
        }
        let mut piece = vec![0; PIECE];
        for tensor in tensors {
            for start in (0..tensor.bytes).step_by(PIECE) {
                let piece = &mut piece[..(tensor.bytes - start).min(PIECE)];
                session.download(tensor.offset + start as u64, piece)?;
                swap_if_big_endian(piece);
                put(piece)?;
            }
        }
        Ok(())
    })
}

/// Tensors of eight bytes come before those of four, so that all are aligned.
fn header(layout: &Layout, tensors: &[&Tensor], progress: Option<&Progress>) -> Header {
    let mut header = Header::default();
    let mut end = 0;
    let mut add = |name: &str, dtype, shape: &[usize], bytes| {
        let info = TensorInfo { dtype, shape: shape.to_vec(), data_offsets: (end, end + bytes) };
        header.tensors.insert(name.to_string(), info);
        end += bytes;
    };
    layout.counters.iter().for_each(|name| add(name, Dtype::I64, &[], 8));
    tensors.iter().for_each(|tensor| add(&tensor.name, Dtype::F32, &tensor.shape, tensor.bytes));
    // Some of PyTorch's loaders ask for it.
    header.words.insert("format".into(), "pt".into());
    header.words.extend(progress.into_iter().flat_map(Progress::words));
    header
}
