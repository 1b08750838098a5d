//! The reference files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_plan::shape::DType;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A group of cases with their tensors.
pub struct Group {
    /// The cases.
    pub cases: Vec<Case>,
    tensors: BTreeMap<String, Vec<u8>>,
}

/// A network, its training, and its batches.
#[derive(Deserialize)]
pub struct Case {
    pub name: String,
    pub batch: u64,
    pub inputs: Vec<Input>,
    pub calls: Vec<Call>,
    pub output: String,
    pub loss: Named,
    pub optimizer: Named,
    pub steps: usize,
    pub accumulate: u64,
    pub clip_grad_norm: Option<f64>,
    formulas: BTreeMap<String, Formula>,
}

/// A large tensor's elements, each made of a hash of its index.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Formula {
    /// Floats within `scale` of `offset`.
    Around { seed: u32, offset: f64, scale: f64 },
    /// Integers from 0 to below `count`.
    Below { seed: u32, count: u32 },
}

/// An input of the network.
#[derive(Deserialize)]
pub struct Input {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
}

/// A layer applied to values.
#[derive(Deserialize)]
pub struct Call {
    pub path: String,
    pub layer: String,
    pub inputs: Vec<String>,
    pub arguments: Map<String, Value>,
    pub output: String,
    #[serde(default)]
    pub frozen: bool,
}

/// A loss or an optimizer.
#[derive(Deserialize)]
pub struct Named {
    pub name: String,
    pub arguments: Map<String, Value>,
}

impl Group {
    /// The group's two files.
    pub fn read(name: &str) -> Group {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/references");
        let read = |extension: &str| {
            let path = folder.join(name).with_extension(extension);
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let bytes = read("safetensors");
        let tensors = SafeTensors::deserialize(&bytes).expect("the script writes safetensors");
        let tensors = tensors.iter().map(|(name, tensor)| (name.to_string(), tensor.data().to_vec())).collect();
        Group { cases: serde_json::from_slice(&read("json")).expect("the script writes what `Case` reads"), tensors }
    }

    /// The bytes of a tensor that a case is given: `elements` of a type.
    pub fn given(&self, case: &Case, name: &str, dtype: DType, elements: usize) -> Option<Cow<'_, [u8]>> {
        match case.formulas.get(name) {
            Some(formula) => Some(Cow::Owned((0..elements as u32).flat_map(|i| formula.bytes(i, dtype)).collect())),
            None => self.tensors.get(&format!("{}/{name}", case.name)).map(|bytes| Cow::Borrowed(&bytes[..])),
        }
    }

    /// The numbers of a tensor that a case must give.
    pub fn expected(&self, case: &Case, name: &str) -> Option<Vec<f32>> {
        self.tensors.get(&format!("{}/{name}", case.name)).map(|bytes| floats(bytes))
    }

    /// The names of a case's tensors.
    pub fn names(&self, case: &Case) -> Vec<&str> {
        let prefix = format!("{}/", case.name);
        self.tensors.keys().filter_map(|name| name.strip_prefix(&prefix)).collect()
    }
}

impl Case {
    /// Of a tensor that was computed, what there is a reference for: all of it, or of a large one a sample.
    pub fn sampled(&self, tensor: Vec<f32>) -> Vec<f32> {
        const APART: [usize; 7] = [1, 11, 29, 61, 127, 251, 509];
        if self.formulas.is_empty() {
            return tensor;
        }
        let apart = APART.into_iter().find(|apart| tensor.len() <= 700 * apart).expect("none is so large");
        tensor.into_iter().step_by(apart).collect()
    }
}

impl Formula {
    /// Element `i`.
    fn bytes(self, i: u32, dtype: DType) -> impl Iterator<Item = u8> {
        let element = match self {
            Formula::Around { seed, offset, scale } => {
                let unit = f64::from(hash(i.wrapping_add(seed)) >> 8) / f64::from(1u32 << 23) - 1.0;
                ((offset + scale * unit) as f32).to_bits()
            }
            Formula::Below { seed, count } => hash(i.wrapping_add(seed)) % count,
        };
        // Of a byte, the first of the four is all there is.
        element.to_le_bytes().into_iter().take(dtype.bytes() as usize)
    }
}

/// The finalizer of MurmurHash3.
fn hash(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x85EB_CA6B);
    x = (x ^ (x >> 13)).wrapping_mul(0xC2B2_AE35);
    x ^ (x >> 16)
}

/// Little-endian single-precision numbers.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
