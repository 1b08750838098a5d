//! What can go wrong with checkpoints, in words that name the file and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An error of a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: can't {action}: {source}{}", path.display(), io_help(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `open`, `read` or the like.
        action: &'static str,
        /// The system's own words.
        source: io::Error,
    },
    /// A file that is no safetensors file, or not a whole one.
    #[error(
        "{}: {problem}\nhelp: the file is damaged, cut short, or no safetensors file: take an older copy, or save it anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A zip file, such as `torch.save` makes.
    #[error(
        "{}: this is a zip file, such as `torch.save` makes, and no safetensors file\n\
         help: convert it in PyTorch: `safetensors.torch.save_file(torch.load(\"net.pt\"), \"net.safetensors\")`",
        path.display()
    )]
    Zip {
        /// The file.
        path: PathBuf,
    },
    /// Tensors that are not those of the network: all of them.
    #[error("{} does not fit `{network}`:{}\nhelp: {help}", path.display(), list(differences))]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// The network.
        network: String,
        /// What differs, by name.
        differences: Vec<Difference>,
        /// What to do about it.
        help: &'static str,
    },
    /// A file from which training can't go on.
    #[error(
        "{}: {problem}\nhelp: `load_weights` takes the weights alone from it, and training begins anew from them",
        path.display()
    )]
    Resume {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A network that can't be saved, for two of its parameters have one name.
    #[error(
        "`{network}` has two parameters `{name}`, which can't both be in a file\nhelp: give its members names of their own"
    )]
    NameTwice {
        /// The network.
        network: String,
        /// The name.
        name: String,
    },
}

/// A tensor that is not in the file as it is in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The network has it, the file has not.
    Missing {
        /// Its name.
        name: String,
        /// Its shape in the network.
        shape: Vec<usize>,
    },
    /// The file has it, the network has not.
    Extra {
        /// Its name.
        name: String,
        /// Its shape in the file.
        shape: Vec<usize>,
    },
    /// It has another shape.
    Shape {
        /// Its name.
        name: String,
        /// Its shape in the network.
        expected: Vec<usize>,
        /// Its shape in the file.
        found: Vec<usize>,
    },
    /// Its elements are of another type than `F32`.
    Type {
        /// Its name.
        name: String,
        /// The type of its elements in the file.
        found: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Missing { name, shape } => write!(f, "missing: {} {shape:?}", Name(name)),
            Difference::Extra { name, shape } => write!(f, "not in the network: {} {shape:?}", Name(name)),
            Difference::Shape { name, expected, found } => {
                write!(f, "another shape: {} is {found:?} in the file, {expected:?} in the network", Name(name))
            }
            Difference::Type { name, found } => {
                write!(f, "another type: {} is {found} in the file, not F32", Name(name))
            }
        }
    }
}

/// A name from a file, which may be anything: what is no letter is escaped, and the end of a very long one left out.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 200;
        let shown = self.0.char_indices().nth(LONGEST).map_or(self.0, |(end, _)| &self.0[..end]);
        let rest = if shown.len() < self.0.len() { "..." } else { "" };
        write!(f, "`{}{rest}`", shown.escape_debug())
    }
}

/// Every difference on a line of its own; of a file that was made to be a nuisance, not every one.
fn list(differences: &[Difference]) -> String {
    const MOST: usize = 4096;
    let mut text: String = differences.iter().take(MOST).map(|difference| format!("\n  {difference}")).collect();
    if let Some(more) = differences.len().checked_sub(MOST).filter(|more| *more > 0) {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

impl Error {
    pub(super) fn io(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), action, source }
    }

    pub(super) fn damaged(path: &Path, problem: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), problem: problem.into() }
    }
}

/// The remedy for failures of the system that have a usual one.
fn io_help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "\nhelp: check the path; a folder must be there before a file is saved into it",
        io::ErrorKind::PermissionDenied => "\nhelp: check who may read and write it, and its folder",
        io::ErrorKind::IsADirectory => "\nhelp: this is a folder: give the path of a file",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhelp: the disk is full: free some space, or choose a folder on another disk; what was saved there before is whole"
        }
        _ => "",
    }
}
