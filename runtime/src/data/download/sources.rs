//! Where the datasets are published, and the checksums that are published with them.

use std::path::Path;

use super::{Download, cache_folder};
use crate::data::{Cifar10, Cifar100, Error, FashionMnist, Images, Mnist, Split};

/// The publisher's own page has not let everybody in since 2021; PyTorch keeps a copy.
const MNIST: [&str; 2] = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"];

/// The MD5 sums that torchvision lists.
const MNIST_FILES: [(&str, &str); 4] = [
    ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
    ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
];

/// The publishers serve it without encryption alone; the checksums tell whether it is what they published.
const FASHION_MNIST: [&str; 1] = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"];

/// The MD5 sums of the publishers' page.
const FASHION_MNIST_FILES: [(&str, &str); 4] = [
    ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
    ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
    ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
];

const CIFAR: [&str; 1] = ["https://www.cs.toronto.edu/~kriz/"];

/// The MD5 sums of the publisher's page.
const CIFAR_10_FILE: (&str, &str) = ("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530");
const CIFAR_100_FILE: (&str, &str) = ("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8");

fn all(folder: &Path, places: &[&str], files: &[(&str, &str)]) -> Result<(), Error> {
    for (name, md5) in files {
        let urls = places.iter().map(|place| format!("{place}{name}"));
        Download::new(urls, md5).to(folder.join(name))?;
    }
    Ok(())
}

macro_rules! download {
    ($dataset:ident, $size:literal, $folder:literal, $places:expr, $files:expr) => {
        impl $dataset {
            #[doc = concat!("Reads the dataset from a folder, fetching (", $size, ") what is not there yet.")]
            ///
            /// # Errors
            /// No network, a wrong checksum, a full disk: with the remedy.
            pub fn download(folder: impl AsRef<Path>) -> Result<Split<Images>, Error> {
                all(folder.as_ref(), &$places, &$files)?;
                $dataset::load(folder)
            }

            #[doc = concat!("Reads the dataset from the [`cache_folder`], fetching (", $size, ") what is not there yet.")]
            ///
            /// # Errors
            /// No network, a wrong checksum, a full disk: with the remedy.
            pub fn cached() -> Result<Split<Images>, Error> {
                $dataset::download(cache_folder()?.join($folder))
            }
        }
    };
}

download!(Mnist, "12 MB", "mnist", MNIST, MNIST_FILES);
download!(FashionMnist, "31 MB", "fashion-mnist", FASHION_MNIST, FASHION_MNIST_FILES);
download!(Cifar10, "170 MB", "cifar-10", CIFAR, [CIFAR_10_FILE]);
download!(Cifar100, "169 MB", "cifar-100", CIFAR, [CIFAR_100_FILE]);
