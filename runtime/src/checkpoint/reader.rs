//! Reads a checkpoint. Everything is checked before the first weight is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorInfo};

use super::header::{self, Header};
use super::layout::{GRADIENT, OWN};
use super::{Difference, Error, Layout, PIECE, Progress, Tensor, swap_if_big_endian};
use crate::device::Device;
use crate::session::Session;

/// What a zip file begins with. As the length of a header it would be beyond the longest: the two bytes that follow, the version
/// of the format, are not 0.
const ZIP: &[u8] = b"PK\x03\x04";

/// A file whose header was read.
pub(crate) struct Reader {
    path: PathBuf,
    file: File,
    header: Header,
    /// Where in the file the tensors begin.
    start: u64,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// No such file, or one that is no whole safetensors file.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let mut file = File::open(path).map_err(Error::io(path, "open"))?;
        let length = file.metadata().map_err(Error::io(path, "open"))?.len();
        let io = Error::io(path, "read");
        let damaged = |problem| Err(Error::damaged(path, problem));
        if length < 8 {
            return damaged(format!("it has {length} bytes, too few for a header"));
        }
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix).map_err(&io)?;
        if prefix.starts_with(ZIP) {
            return Err(Error::Zip { path: path.to_owned() });
        }
        let header_length = u64::from_le_bytes(prefix);
        if header_length > header::LONGEST || header_length > length - 8 {
            return damaged(format!(
                "its first eight bytes say that a header of {header_length} bytes follows, but {} do",
                length - 8
            ));
        }
        let mut bytes = vec![0; header_length as usize];
        file.read_exact(&mut bytes).map_err(&io)?;
        let (header, tensors) = Header::parse(&bytes).map_err(|problem| Error::damaged(path, problem))?;
        let start = 8 + header_length;
        if tensors != length - start {
            return damaged(format!("its header speaks of {tensors} bytes of tensors, but {} follow", length - start));
        }
        Ok(Reader { path: path.to_owned(), file, header, start })
    }

    /// How far the run had come that was saved.
    ///
    /// # Errors
    /// A file that holds weights alone.
    pub fn progress(&self) -> Result<Progress, Error> {
        Progress::parse(&self.header.words).map_err(|problem| self.no_resume(problem))
    }

    /// The file is no state from which this run could go on.
    pub fn no_resume(&self, problem: String) -> Error {
        Error::Resume { path: self.path.clone(), problem }
    }

    /// Whether the file holds exactly these tensors: the weights, and where `progress` is given the state of training as
    /// well. Without it, that state may be there. PyTorch's counters of batches may or may not be there.
    ///
    /// # Errors
    /// All that differs.
    pub fn compare(&self, layout: &Layout, progress: Option<&Progress>) -> Result<(), Error> {
        let mut differences = Vec::new();
        let mut known: BTreeSet<&str> = layout.counters.iter().map(String::as_str).collect();
        for tensor in tensors(layout, progress) {
            known.insert(&tensor.name);
            known.extend(tensor.stand_in.iter().map(|(name, _)| name.as_str()));
            let name = tensor.name.clone();
            match self.find(tensor).map(|(info, _)| info) {
                None => differences.push(Difference::Missing { name, shape: tensor.shape.clone() }),
                Some(info) if info.shape != tensor.shape => {
                    let (expected, found) = (tensor.shape.clone(), info.shape.clone());
                    differences.push(Difference::Shape { name, expected, found });
                }
                Some(info) if info.dtype != Dtype::F32 => {
                    differences.push(Difference::Type { name, found: info.dtype.to_string() });
                }
                Some(_) => {}
            }
        }
        for (name, info) in &self.header.tensors {
            if !known.contains(name.as_str()) && (progress.is_some() || !name.starts_with(OWN)) {
                differences.push(Difference::Extra { name: name.clone(), shape: info.shape.clone() });
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let help = help(&differences, &self.header.tensors);
        Err(Error::Mismatch { path: self.path.clone(), network: layout.network.clone(), differences, help })
    }

    /// A tensor or what stands in for it, and the factor between them.
    fn find(&self, tensor: &Tensor) -> Option<(&TensorInfo, f32)> {
        let own = self.header.tensors.get(&tensor.name).map(|info| (info, 1.0));
        own.or_else(|| {
            let (name, factor) = tensor.stand_in.as_ref()?;
            Some((self.header.tensors.get(name)?, *factor))
        })
    }

    /// Reads the tensors that were [compared](Reader::compare) into the arena.
    ///
    /// # Errors
    /// A failure of the disk or of the device. Some tensors may then have been read.
    pub fn read<D: Device>(
        &mut self,
        session: &mut Session<D>,
        layout: &Layout,
        progress: Option<&Progress>,
    ) -> Result<(), crate::Error> {
        let io = Error::io(&self.path, "read");
        let mut piece = vec![0; PIECE];
        for tensor in tensors(layout, progress) {
            let Some((TensorInfo { data_offsets, .. }, factor)) = self.find(tensor) else { continue };
            self.file.seek(SeekFrom::Start(self.start + data_offsets.0 as u64)).map_err(&io)?;
            for start in (0..tensor.bytes).step_by(PIECE) {
                let piece = &mut piece[..(tensor.bytes - start).min(PIECE)];
                self.file.read_exact(piece).map_err(&io)?;
                swap_if_big_endian(piece);
                if factor != 1.0 {
                    scale(piece, factor);
                }
                session.upload_at(tensor.offset + start as u64, piece)?;
            }
        }
        Ok(())
    }
}

/// Multiplies native floats.
fn scale(bytes: &mut [u8], factor: f32) {
    for bytes in bytes.as_chunks_mut().0 {
        *bytes = (f32::from_ne_bytes(*bytes) * factor).to_ne_bytes();
    }
}

/// The tensors that a file must have.
fn tensors<'l>(layout: &'l Layout, progress: Option<&Progress>) -> impl Iterator<Item = &'l Tensor> {
    let optimizer = layout.optimizer.iter().filter(move |_| progress.is_some());
    let between = progress.is_some_and(Progress::is_between_updates);
    layout.weights.iter().chain(optimizer).chain(layout.gradients.iter().filter(move |_| between))
}

/// The likely reason.
fn help(differences: &[Difference], tensors: &BTreeMap<String, TensorInfo>) -> &'static str {
    if differences.iter().all(|difference| matches!(difference, Difference::Type { .. })) {
        return "convert them first: in PyTorch, `{name: tensor.float() for name, tensor in state_dict.items()}`";
    }
    let waits = |difference: &Difference| {
        let (Difference::Missing { name, .. } | Difference::Extra { name, .. }) = difference else { return false };
        name.starts_with(GRADIENT)
    };
    if differences.iter().all(waits) {
        return "it was saved between two updates by a network with other savings, whose gradients wait elsewhere: save after an \
                update, or load into the network with the same `#[without(..)]`";
    }
    // PyTorch's wrappers put a word before every name: `module.`, `_orig_mod.`, or the name of a member of a module around it.
    let word = tensors.keys().next().and_then(|name| name.split_once('.')).map_or("", |(word, _)| word);
    let inside = |name: &String| name.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'));
    let follows = |name: &str| tensors.contains_key(&format!("{word}.{name}"));
    let is_inside = |difference: &Difference| matches!(difference, Difference::Missing { name, .. } if follows(name));
    if tensors.keys().all(inside) && differences.iter().any(is_inside) {
        return "every name begins with that of a wrapper: save the `state_dict` of the module inside of it";
    }
    "a file loads into the network that it was saved from: names and shapes must be the same"
}
