//! The header of a safetensors file: for each tensor its type, shape and place, and some words besides.
//!
//! The header of a file from elsewhere may be anything. It is read entry by entry into what it says, so that its memory is a
//! small multiple of its length; the format's own crate then checks that the tensors cover the rest of the file without gaps.

use std::collections::BTreeMap;
use std::fmt;

use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The most bytes that the format allows a header.
pub const LONGEST: u64 = 100_000_000;

/// The name under which the words stand.
const WORDS: &str = "__metadata__";

/// The header of a file.
#[derive(Debug, Default)]
pub struct Header {
    /// The tensors by name.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// The words: any strings.
    pub words: BTreeMap<String, String>,
}

impl Header {
    /// The header in these bytes, and the length of the tensors that it speaks of.
    pub fn parse(bytes: &[u8]) -> Result<(Header, u64), String> {
        let header: Header =
            serde_json::from_slice(bytes).map_err(|error| format!("its header is no such: {error}"))?;
        let mut tensors: Vec<_> = header.tensors.iter().map(|(name, info)| (name.clone(), info.clone())).collect();
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let metadata = Metadata::new(None, tensors).map_err(|error| format!("its header makes no sense: {error}"))?;
        let length = metadata.data_len() as u64;
        Ok((header, length))
    }

    /// Its bytes: the same for the same header, a multiple of eight.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut map = Map::new();
        map.insert(WORDS.into(), serde_json::to_value(&self.words)?);
        for (name, info) in &self.tensors {
            map.insert(name.clone(), serde_json::to_value(info)?);
        }
        let mut bytes = serde_json::to_vec(&Value::Object(map))?;
        bytes.resize(bytes.len().next_multiple_of(8), b' ');
        Ok(bytes)
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    let twice = match name.as_str() {
                        WORDS => !std::mem::replace(&mut header.words, map.next_value()?).is_empty(),
                        _ => header.tensors.insert(name, map.next_value()?).is_some(),
                    };
                    if twice {
                        return Err(A::Error::custom("a name stands there twice"));
                    }
                }
                Ok(header)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
