//! IDX, the format of MNIST's files: a magic number, the sizes of each dimension, the values.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::{Compression, write::GzEncoder};

use super::Error;
use super::bytes::Source;

/// The content of an IDX file of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idx {
    /// The size of each dimension.
    pub shape: Vec<usize>,
    /// The values, the last dimension's side by side.
    pub values: Vec<u8>,
}

/// The code for unsigned bytes.
const UNSIGNED_BYTE: u8 = 0x08;

impl Idx {
    /// Reads a file, plain or gzip.
    ///
    /// # Errors
    /// A file that can't be read or that is no whole IDX file of bytes.
    pub fn read(path: impl AsRef<Path>) -> Result<Idx, Error> {
        Idx::parse(&mut Source::open(path.as_ref())?)
    }

    pub(super) fn parse(source: &mut Source) -> Result<Idx, Error> {
        let magic: [u8; 4] = source.array("the magic number")?;
        let [0, 0, kind, dimensions] = magic else {
            let problem = format!(
                "the magic number is 0x{:08x}, but that of an IDX file is 0x0000....",
                u32::from_be_bytes(magic)
            );
            return Err(source.error(0, problem, "check that this is an IDX file, and fetch it again"));
        };
        if kind != UNSIGNED_BYTE {
            let problem = format!("the values are of type 0x{kind:02x}, where 0x08 (unsigned bytes) is expected");
            return Err(source.error(2, problem, "check that this is the file you mean: MNIST's have unsigned bytes"));
        }
        if dimensions == 0 {
            return Err(source.error(
                3,
                "the file has 0 dimensions",
                "check that this is an IDX file, and fetch it again",
            ));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(u32::from_be_bytes(source.array("the size of a dimension")?) as usize);
        }
        let length = checked_length(source, &shape)?;
        let values = source.bytes(length, "the values that the header announces")?;
        source.end()?;
        Ok(Idx { shape, values })
    }

    /// Writes a file, as gzip if its name ends with `.gz`.
    ///
    /// # Errors
    /// A shape that IDX can't express or that does not match the values; a file that can't be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let header = self.header()?;
        let mut file = BufWriter::new(File::create(path).map_err(Error::io(path, "create"))?);
        let written = if path.extension().is_some_and(|extension| extension == "gz") {
            let mut encoder = GzEncoder::new(&mut file, Compression::default());
            encoder
                .write_all(&header)
                .and_then(|()| encoder.write_all(&self.values))
                .and_then(|()| encoder.try_finish())
        } else {
            file.write_all(&header).and_then(|()| file.write_all(&self.values))
        };
        written.and_then(|()| file.flush()).map_err(Error::io(path, "write"))
    }

    fn header(&self) -> Result<Vec<u8>, Error> {
        let length = self.shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let dimensions = u8::try_from(self.shape.len()).ok().filter(|dimensions| *dimensions > 0);
        let (Some(dimensions), true) = (dimensions, length == Some(self.values.len())) else {
            return Err(Error::argument(
                format!("{} values don't have the shape {:?}", self.values.len(), self.shape),
                "the product of 1 to 255 sizes is the number of values",
            ));
        };
        let mut header = vec![0, 0, UNSIGNED_BYTE, dimensions];
        for size in &self.shape {
            let size = u32::try_from(*size).map_err(|_| {
                Error::argument(format!("IDX can't express the size {size}"), "it has 32 bits for each")
            })?;
            header.extend(size.to_be_bytes());
        }
        Ok(header)
    }
}

/// How many values a header announces, which is checked before anything of that size is allocated.
fn checked_length(source: &Source, shape: &[usize]) -> Result<u64, Error> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut length: u64 = 1;
    for (dimension, size) in shape.iter().enumerate() {
        let product = length.checked_mul(*size as u64).filter(|length| *length <= source.most());
        length = product.ok_or_else(|| {
            let problem = format!(
                "dimension {dimension} has the size {size}, more than a file of this length can hold ({} bytes)",
                source.most()
            );
            let help = "the file was cut short or its header is damaged: fetch it again";
            source.error(4 + 4 * dimension as u64, problem, help)
        })?;
    }
    Ok(length)
}
