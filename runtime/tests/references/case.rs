//! The reference files.

use std::collections::BTreeMap;
use std::path::PathBuf;

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

    /// The bytes of a tensor of a case.
    pub fn bytes(&self, case: &Case, name: &str) -> Option<&[u8]> {
        self.tensors.get(&format!("{}/{name}", case.name)).map(Vec::as_slice)
    }

    /// The numbers of a tensor of a case.
    pub fn floats(&self, case: &Case, name: &str) -> Option<Vec<f32>> {
        self.bytes(case, name).map(floats)
    }

    /// The names of a case's tensors.
    pub fn names(&self, case: &Case) -> Vec<&str> {
        let prefix = format!("{}/", case.name);
        self.tensors.keys().filter_map(|name| name.strip_prefix(&prefix)).collect()
    }
}

/// Little-endian single-precision numbers.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
