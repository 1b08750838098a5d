//! Pictures in folders, one folder for each class.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Dataset, Error, picture};

/// How many channels pictures are read with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    /// One: brightness as Pillow's mode `L` has it (ITU-R 601).
    Grey,
    /// Three: red, green and blue.
    #[default]
    Rgb,
}

/// A folder with a folder of pictures for each class: `cats/1.jpg`, `dogs/7.png`. Classes and pictures are in the order of
/// their names. Each picture is decoded when it is read, and made `height` x `width` as torchvision does it: resized, so that
/// it just covers that, then cut to it from the middle.
///
/// Decoding takes time and memory; [`Loader::workers`](super::Loader::workers) lets several threads do it.
#[derive(Clone, Debug)]
pub struct ImageFolder {
    files: Vec<(PathBuf, i32)>,
    classes: Vec<String>,
    shape: [usize; 3],
    resize: usize,
    colour: Colour,
}

impl ImageFolder {
    /// The pictures below a folder, each made a square of `size` pixels: the shorter side is resized to `size`, and the
    /// middle is cut out.
    ///
    /// # Errors
    /// A folder that can't be read or has no classes, and a class without pictures; a size of zero.
    pub fn open(folder: impl AsRef<Path>, size: usize, colour: Colour) -> Result<ImageFolder, Error> {
        let folder = folder.as_ref();
        if size == 0 || size > picture::LARGEST {
            return Err(Error::argument(
                format!("pictures can't be of size {size}"),
                format!("give the side of a square in pixels, up to {}", picture::LARGEST),
            ));
        }
        let missing = |path: &Path, problem: &str, help: &str| Error::Missing {
            path: path.to_owned(),
            problem: problem.into(),
            help: help.into(),
        };
        let (mut files, mut classes) = (Vec::new(), Vec::new());
        for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let label = i32::try_from(classes.len()).unwrap_or(i32::MAX);
            let before = files.len();
            files.extend(entries(&path)?.into_iter().filter(|path| is_picture(path)).map(|path| (path, label)));
            if files.len() == before {
                return Err(missing(
                    &path,
                    "there are no pictures in this folder",
                    "put .png, .jpg or .jpeg files into it, or remove it: each folder is a class",
                ));
            }
            classes.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
        if classes.is_empty() {
            return Err(missing(
                folder,
                "there are no folders in this folder",
                "make a folder for each class and put its pictures there",
            ));
        }
        let channels = match colour {
            Colour::Grey => 1,
            Colour::Rgb => 3,
        };
        Ok(ImageFolder { files, classes, shape: [channels, size, size], resize: size, colour })
    }

    /// Resizes the shorter side to this instead, before the middle is cut out: evaluation on ImageNet resizes to 256 and
    /// cuts 224.
    ///
    /// # Errors
    /// A size smaller than what is cut out.
    pub fn resize(self, shorter_side: usize) -> Result<ImageFolder, Error> {
        if !(self.shape[1]..=picture::LARGEST).contains(&shorter_side) {
            return Err(Error::argument(
                format!(
                    "pictures of {0} x {0} can't be cut out of ones whose shorter side is {shorter_side}",
                    self.shape[1]
                ),
                format!("resize to a size from {} to {}", self.shape[1], picture::LARGEST),
            ));
        }
        Ok(ImageFolder { resize: shorter_side, ..self })
    }

    /// The file of a sample.
    pub fn path(&self, index: usize) -> Option<&Path> {
        self.files.get(index).map(|(path, _)| path.as_path())
    }

    fn file(&self, index: usize) -> Result<&(PathBuf, i32), Error> {
        self.files.get(index).ok_or(Error::Index { index, len: self.files.len() })
    }
}

/// What a folder holds, in the order of names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut entries: Vec<PathBuf> = entries.map_err(Error::io(folder, "read"))?;
    entries.sort();
    Ok(entries)
}

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    (extension == "png" || extension == "jpg" || extension == "jpeg") && path.is_file()
}

impl Dataset for ImageFolder {
    type Element = u8;
    type Target = i32;

    fn len(&self) -> usize {
        self.files.len()
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read(&self, index: usize, sample: &mut [u8]) -> Result<(), Error> {
        let (path, _) = self.file(index)?;
        if sample.len() != self.sample_len() {
            return Err(Error::Length { expected: self.sample_len(), given: sample.len() });
        }
        picture::read(path, self.resize, self.shape[1], self.colour, sample)
    }

    fn label(&self, index: usize) -> Result<i32, Error> {
        self.file(index).map(|(_, label)| *label)
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }
}
