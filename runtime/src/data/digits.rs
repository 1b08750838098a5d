//! The dataset that the library carries with it.

use std::path::Path;

use super::bytes::Source;
use super::{Error, Images, Mnist, Split, mnist};

const IMAGES: &[u8] = include_bytes!("../../data/digits/images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../data/digits/labels-idx1-ubyte.gz");

/// As in scikit-learn's own example: the first half to learn from, the second to test.
const TRAIN: usize = 898;

/// 1,797 handwritten digits of 8 x 8 grey pixels, embedded in the library: no files, no network. The first 898 are for
/// training, the other 899 for testing, as in scikit-learn's example of recognizing them.
///
/// The data count the dark pixels of a 4 x 4 block, from 0 to 16. Here they are scaled to the full range of bytes, 0 to 255,
/// so that [`to_tensor`](super::Dataset::to_tensor) and a network's `normalize` treat them as any other picture; rounding
/// moves a value by less than 0.002 of the range.
///
/// They are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine Learning
/// Repository, 1998, <https://doi.org/10.24432/C50P49>), under the licence CC BY 4.0.
///
/// # Errors
/// None in practice: the data are part of the library.
pub fn digits() -> Result<Split<Images>, Error> {
    let source = |name: &str, bytes| Source::new(Path::new(name), bytes, (bytes as &[u8]).len() as u64);
    let mut images = source("digits/images-idx3-ubyte.gz", IMAGES)?;
    let mut labels = source("digits/labels-idx1-ubyte.gz", LABELS)?;
    let classes = Mnist::CLASSES.map(String::from).to_vec();
    let (train, test) = mnist::parse(&mut images, &mut labels, classes, Some([8, 8]))?.split_at(TRAIN);
    Ok(Split { train, test })
}
