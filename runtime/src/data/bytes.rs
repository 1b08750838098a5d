//! Files read step by step, never trusting what a header says about lengths.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::Error;

/// The most bytes that one byte of deflate can stand for.
const DEFLATE_RATIO: u64 = 1032;

/// A file being read, plain or gzip, which knows how far it has come.
pub(super) struct Source<'a> {
    path: PathBuf,
    reader: Box<dyn Read + 'a>,
    offset: u64,
    unpacked: bool,
    /// An upper bound of the bytes it can hold.
    most: u64,
}

impl<'a> Source<'a> {
    /// Opens a file; one that begins as gzip does is unpacked.
    pub(super) fn open(path: &Path) -> Result<Source<'static>, Error> {
        let file = File::open(path).map_err(Error::io(path, "open"))?;
        let metadata = file.metadata().map_err(Error::io(path, "open"))?;
        if metadata.is_dir() {
            return Err(Error::Missing {
                path: path.to_owned(),
                problem: "this is a folder, where a file is expected".into(),
                help: "give the path of the file".into(),
            });
        }
        Source::new(path, BufReader::with_capacity(1 << 16, file), metadata.len())
    }

    /// Reads what `reader` gives, which is `length` bytes long and called `path` in errors.
    pub(super) fn new(path: &Path, mut reader: impl BufRead + 'a, length: u64) -> Result<Source<'a>, Error> {
        let unpacked = reader.fill_buf().map_err(Error::io(path, "read"))?.starts_with(&[0x1f, 0x8b]);
        let (reader, most): (Box<dyn Read + 'a>, u64) = match unpacked {
            true => (Box::new(MultiGzDecoder::new(reader)), length.saturating_mul(DEFLATE_RATIO)),
            false => (Box::new(reader), length),
        };
        Ok(Source { path: path.to_owned(), reader, offset: 0, unpacked, most })
    }

    /// A part of an archive, whose errors count from the start of that part.
    pub(super) fn part(path: PathBuf, reader: impl Read + 'a, most: u64) -> Source<'a> {
        Source { path, reader: Box::new(reader), offset: 0, unpacked: true, most }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// An upper bound of the bytes it can hold.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// An error at a place in the file.
    pub(super) fn error(&self, offset: u64, problem: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Format {
            path: self.path.clone(),
            offset,
            unpacked: self.unpacked,
            problem: problem.into(),
            help: help.into(),
        }
    }

    /// The next bytes, a fixed number of them.
    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let bytes = self.bytes(N as u64, what)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    /// The next `length` bytes. Memory grows with what is really there.
    pub(super) fn bytes(&mut self, length: u64, what: &str) -> Result<Vec<u8>, Error> {
        let bytes = self.up_to(length)?;
        match bytes.len() as u64 {
            read if read == length => Ok(bytes),
            read => Err(self.error(
                self.offset,
                format!("the file ends here, {} bytes short of {what} ({length} bytes)", length - read),
                "the file was cut short: fetch it again",
            )),
        }
    }

    /// Fills `record` with the next bytes; false at the end of the file.
    pub(super) fn record(&mut self, record: &mut [u8], what: &str) -> Result<bool, Error> {
        let mut filled = 0;
        while filled < record.len() {
            match self.reader.read(&mut record[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => {
                    return Err(self.error(
                        self.offset,
                        format!(
                            "the file ends here, {} bytes short of {what} ({} bytes)",
                            record.len() - filled,
                            record.len()
                        ),
                        "the file was cut short: fetch it again",
                    ));
                }
                Ok(read) => {
                    filled += read;
                    self.offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
        Ok(true)
    }

    /// The next bytes, `limit` of them or fewer where the file ends.
    pub(super) fn up_to(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let result = self.reader.by_ref().take(limit).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        match result {
            Ok(_) => Ok(bytes),
            Err(source) => Err(self.failure(source)),
        }
    }

    /// The system's error, or the decoder's where the compressed data are wrong.
    pub(super) fn failure(&self, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => self.error(
                self.offset,
                "the compressed data end before their time",
                "the file was cut short: fetch it again",
            ),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                self.error(self.offset, format!("the compressed data are damaged: {source}"), "fetch the file again")
            }
            io::ErrorKind::OutOfMemory => self.error(
                self.offset,
                "there is no memory for the content of this file",
                "check that it is the file you mean",
            ),
            _ => Error::io(&self.path, "read")(source),
        }
    }

    /// Checks that nothing comes after what was read.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        let offset = self.offset;
        match self.up_to(1)?.as_slice() {
            [] => Ok(()),
            _ => Err(self.error(
                offset,
                "the data should end here, but more bytes follow",
                "check that the file is what its header says, and fetch it again",
            )),
        }
    }
}
