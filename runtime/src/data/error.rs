//! What can go wrong with data, in words that name the file, the place in it, the value and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a dataset, a loader or a download.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: can't {action}: {source}{help}", path.display(), help = io_help(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: `open`, `read` or the like.
        action: &'static str,
        /// The system's own words.
        source: io::Error,
    },
    /// A file whose content is not what it should be.
    #[error("{}: byte {offset}{}: {problem}\nhelp: {help}", path.display(), if *unpacked { " of the unpacked data" } else { "" })]
    Format {
        /// The file.
        path: PathBuf,
        /// Where in the file, from 0.
        offset: u64,
        /// Whether `offset` counts bytes after decompression.
        unpacked: bool,
        /// What is wrong, with the value found.
        problem: String,
        /// What to do about it.
        help: String,
    },
    /// Files that are not where they were looked for.
    #[error("{}: {problem}\nhelp: {help}", path.display())]
    Missing {
        /// The file or folder.
        path: PathBuf,
        /// What is missing.
        problem: String,
        /// What to do about it.
        help: String,
    },
    /// A picture that could not be decoded.
    #[error("{}: {problem}\nhelp: replace the file, or take it out of the folder", path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// The decoder's words.
        problem: String,
    },
    /// A sample that a dataset does not have.
    #[error("there is no sample {index}: the dataset has {len}")]
    Index {
        /// The sample asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// A slice of another length than a sample.
    #[error("a sample has {expected} elements, but the slice for it has {given}")]
    Length {
        /// The elements of a sample.
        expected: usize,
        /// The elements of the slice.
        given: usize,
    },
    /// A slice of another length than a target.
    #[error("a target has {expected} elements, but the slice for it has {given}")]
    TargetLength {
        /// The elements of a target.
        expected: usize,
        /// The elements of the slice.
        given: usize,
    },
    /// An argument that makes no sense.
    #[error("{problem}\nhelp: {help}")]
    Argument {
        /// What is wrong, with the value given.
        problem: String,
        /// What to do about it.
        help: String,
    },
    /// A sample that could not be read while a loader prepared a batch.
    #[error("sample {index}: {source}")]
    Sample {
        /// The sample.
        index: usize,
        /// Why it could not be read.
        source: Box<Error>,
    },
    /// A thread of a loader that could not start, or that panicked in a dataset or a transform.
    #[error("the loader's thread failed: {message}")]
    Worker {
        /// What it said last.
        message: String,
    },
    /// A download that did not come to its end.
    #[error("{url}: {problem}\nfile: {}\nhelp: {help}", path.display())]
    Download {
        /// Where from.
        url: String,
        /// The file that was being written.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        help: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), action, source }
    }

    pub(crate) fn argument(problem: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Argument { problem: problem.into(), help: help.into() }
    }
}

/// The remedy for failures of the system that have a usual one.
fn io_help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "\nhelp: check the path",
        io::ErrorKind::PermissionDenied => "\nhelp: check who may read and write it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhelp: the disk is full: free some space, or choose a folder on another disk"
        }
        _ => "",
    }
}
