//! CIFAR-10 and CIFAR-100, in their publisher's binary version.

use std::path::{Path, PathBuf};

use super::bytes::Source;
use super::{Error, Images, Split, archive, cifar_names};

/// CIFAR-10: 32 x 32 colour pictures of 10 classes, 50,000 to train and 10,000 to test (Krizhevsky 2009).
#[derive(Clone, Copy, Debug)]
pub struct Cifar10;

/// CIFAR-100: as CIFAR-10, with 100 classes in 20 superclasses.
#[derive(Clone, Copy, Debug)]
pub struct Cifar100;

impl Cifar10 {
    /// The names of the classes.
    pub const CLASSES: [&str; 10] = cifar_names::TEN;

    /// Reads the binary version: `cifar-10-binary.tar.gz`, the folder that it lies in, or the folder that was extracted
    /// from it.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Split<Images>, Error> {
        load(path.as_ref(), &TEN)
    }
}

impl Cifar100 {
    /// The names of the classes.
    pub const CLASSES: [&str; 100] = cifar_names::FINE;
    /// The names of the superclasses.
    pub const SUPERCLASSES: [&str; 20] = cifar_names::COARSE;

    /// Reads the binary version with its 100 classes: `cifar-100-binary.tar.gz`, the folder that it lies in, or the folder
    /// that was extracted from it.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Split<Images>, Error> {
        load(path.as_ref(), &FINE)
    }

    /// The same pictures with the 20 superclasses as labels.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn load_superclasses(path: impl AsRef<Path>) -> Result<Split<Images>, Error> {
        load(path.as_ref(), &COARSE)
    }
}

/// One way to read one of the datasets.
struct Layout {
    name: &'static str,
    archive: &'static str,
    folder: &'static str,
    train: &'static [&'static str],
    test: &'static str,
    /// The labels of a record, each with the number of its classes.
    labels: &'static [usize],
    /// Which of them is wanted.
    label: usize,
    classes: &'static [&'static str],
}

const TEN: Layout = Layout {
    name: "Cifar10",
    archive: "cifar-10-binary.tar.gz",
    folder: "cifar-10-batches-bin",
    train: &["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"],
    test: "test_batch.bin",
    labels: &[10],
    label: 0,
    classes: &cifar_names::TEN,
};

const FINE: Layout = Layout {
    name: "Cifar100",
    archive: "cifar-100-binary.tar.gz",
    folder: "cifar-100-binary",
    train: &["train.bin"],
    test: "test.bin",
    labels: &[20, 100],
    label: 1,
    classes: &cifar_names::FINE,
};

const COARSE: Layout = Layout { label: 0, classes: &cifar_names::COARSE, ..FINE };

const SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;

/// Pixels and labels of some records.
#[derive(Default)]
struct Records {
    pixels: Vec<u8>,
    labels: Vec<i32>,
}

fn load(path: &Path, layout: &Layout) -> Result<Split<Images>, Error> {
    let names = || layout.train.iter().copied().chain([layout.test]);
    let mut files: Vec<Option<Records>> = names().map(|_| None).collect();
    let (path, packed) = find(path, layout)?;
    if packed {
        archive::read(&path, |name, source| {
            if let Some(place) = names().position(|wanted| wanted == name) {
                files[place] = Some(records(source, layout)?);
            }
            Ok(())
        })?;
    } else {
        for (name, file) in names().zip(&mut files) {
            *file = Some(records(&mut Source::open(&path.join(name))?, layout)?);
        }
    }
    let mut parts = Vec::new();
    for (name, file) in names().zip(files) {
        parts.push(file.ok_or_else(|| missing(&path, layout, format!("the archive has no {name}")))?);
    }
    let images = |records: Records| Images::new(SHAPE, records.pixels, records.labels, layout.classes.iter().copied());
    let test = images(parts.pop().unwrap_or_default())?;
    let train = parts.into_iter().reduce(|mut all, part| {
        all.pixels.extend(part.pixels);
        all.labels.extend(part.labels);
        all
    });
    Ok(Split { train: images(train.unwrap_or_default())?, test })
}

/// Where the files are, and whether that is an archive.
fn find(path: &Path, layout: &Layout) -> Result<(PathBuf, bool), Error> {
    if path.is_file() {
        return Ok((path.to_owned(), true));
    }
    let extracted = [path.to_owned(), path.join(layout.folder)];
    if let Some(folder) = extracted.into_iter().find(|folder| folder.join(layout.test).is_file()) {
        return Ok((folder, false));
    }
    let archive = path.join(layout.archive);
    if archive.is_file() {
        return Ok((archive, true));
    }
    Err(missing(path, layout, format!("there is no {} and no {}", layout.archive, layout.test)))
}

fn missing(path: &Path, layout: &Layout, problem: String) -> Error {
    Error::Missing {
        path: path.to_owned(),
        problem,
        help: format!(
            "`{}::download` fetches it (with the feature `download`); or check the path: the binary version is needed, not \
             those for Python and Matlab",
            layout.name
        ),
    }
}

fn records(source: &mut Source, layout: &Layout) -> Result<Records, Error> {
    let mut records = Records::default();
    let mut record = vec![0; layout.labels.len() + PIXELS];
    let mut offset = 0;
    while source.record(&mut record, "a record of labels and pixels")? {
        for (place, classes) in layout.labels.iter().enumerate() {
            if usize::from(record[place]) >= *classes {
                let problem = format!(
                    "the label of sample {} is {}, but there are {classes} classes",
                    records.labels.len(),
                    record[place]
                );
                let help = "check that this is the file you mean, and fetch it again";
                return Err(source.error(offset + place as u64, problem, help));
            }
        }
        records.labels.push(record[layout.label].into());
        records.pixels.extend(&record[layout.labels.len()..]);
        offset += record.len() as u64;
    }
    match records.labels.is_empty() {
        true => Err(source.error(0, "the file is empty", "fetch it again")),
        false => Ok(records),
    }
}
