//! MNIST and Fashion-MNIST, and whatever else comes in IDX files.

use std::path::{Path, PathBuf};

use super::bytes::Source;
use super::{Error, Idx, Images, Split};

/// MNIST: handwritten digits, 60,000 to train and 10,000 to test, of 28 x 28 grey pixels (LeCun, Cortes, Burges).
#[derive(Clone, Copy, Debug)]
pub struct Mnist;

/// Fashion-MNIST: pictures of clothes in the form of MNIST (Xiao, Rasul, Vollgraf 2017).
#[derive(Clone, Copy, Debug)]
pub struct FashionMnist;

impl Mnist {
    /// The names of the classes.
    pub const CLASSES: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

    /// Reads the four files in a folder, by their published names (`train-images-idx3-ubyte` and so on), plain or with
    /// `.gz`. The folder may also be one that torchvision has made.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn load(folder: impl AsRef<Path>) -> Result<Split<Images>, Error> {
        load(folder.as_ref(), "MNIST", "Mnist", &Mnist::CLASSES)
    }
}

impl FashionMnist {
    /// The names of the classes.
    pub const CLASSES: [&str; 10] =
        ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"];

    /// Reads the four files in a folder, by their published names (`train-images-idx3-ubyte` and so on), plain or with
    /// `.gz`. The folder may also be one that torchvision has made.
    ///
    /// # Errors
    /// Files that are missing or damaged.
    pub fn load(folder: impl AsRef<Path>) -> Result<Split<Images>, Error> {
        load(folder.as_ref(), "FashionMNIST", "FashionMnist", &FashionMnist::CLASSES)
    }
}

impl Images {
    /// Pictures and labels from two IDX files, plain or gzip: pictures of three dimensions (number, height, width), labels
    /// of one.
    ///
    /// # Errors
    /// Files that can't be read, are damaged or don't match each other, and labels beyond the classes.
    pub fn from_idx(
        images: impl AsRef<Path>,
        labels: impl AsRef<Path>,
        classes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Images, Error> {
        let (mut images, mut labels) = (Source::open(images.as_ref())?, Source::open(labels.as_ref())?);
        parse(&mut images, &mut labels, classes.into_iter().map(Into::into).collect(), None)
    }
}

fn load(folder: &Path, torchvision: &str, name: &str, classes: &[&str]) -> Result<Split<Images>, Error> {
    let part = |part: &str| {
        let images = find(folder, torchvision, name, &format!("{part}-images-idx3-ubyte"))?;
        let labels = find(folder, torchvision, name, &format!("{part}-labels-idx1-ubyte"))?;
        let classes = classes.iter().map(|class| class.to_string()).collect();
        parse(&mut Source::open(&images)?, &mut Source::open(&labels)?, classes, Some([28, 28]))
    };
    Ok(Split { train: part("train")?, test: part("t10k")? })
}

fn find(folder: &Path, torchvision: &str, name: &str, file: &str) -> Result<PathBuf, Error> {
    let folders = [folder.to_owned(), folder.join("raw"), folder.join(torchvision).join("raw")];
    let candidates = folders.iter().flat_map(|folder| [folder.join(file), folder.join(format!("{file}.gz"))]);
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| Error::Missing {
        path: folder.to_owned(),
        problem: format!("there is no {file} or {file}.gz"),
        help: format!("`{name}::download` fetches it (with the feature `download`); or check the path"),
    })
}

/// `size`: the height and width that the pictures must have.
pub(super) fn parse(
    images: &mut Source,
    labels: &mut Source,
    classes: Vec<String>,
    size: Option<[usize; 2]>,
) -> Result<Images, Error> {
    let Idx { shape, values: pixels } = dimensions(images, 3, "pictures")?;
    let (count, height, width) = (shape[0], shape[1], shape[2]);
    if height == 0 || width == 0 || size.is_some_and(|size| size != [height, width]) {
        let expected = size.map_or("pixels".to_owned(), |[height, width]| format!("{height} x {width}"));
        let problem = format!("the pictures are {height} x {width}, where {expected} are expected");
        return Err(images.error(8, problem, "check that this is the file you mean"));
    }
    let Idx { values, .. } = dimensions(labels, 1, "labels")?;
    if values.len() != count {
        let problem = format!("{} labels for the {count} pictures in {}", values.len(), images.path().display());
        return Err(labels.error(4, problem, "take both files from the same part of the same dataset"));
    }
    if let Some(index) = values.iter().position(|label| usize::from(*label) >= classes.len()) {
        let problem =
            format!("the label of sample {index} is {}, but there are {} classes", values[index], classes.len());
        return Err(labels.error(
            8 + index as u64,
            problem,
            "check that this is the file you mean, and fetch it again",
        ));
    }
    Images::new([1, height, width], pixels, values.into_iter().map(i32::from).collect(), classes)
}

fn dimensions(source: &mut Source, expected: usize, what: &str) -> Result<Idx, Error> {
    let idx = Idx::parse(source)?;
    if idx.shape.len() != expected {
        let problem = format!("the file has {} dimensions, where {what} have {expected}", idx.shape.len());
        return Err(source.error(3, problem, "check that the files of pictures and of labels are not exchanged"));
    }
    Ok(idx)
}
