//! Pictures: made up, where there are no data, and shown on a sheet.
#![allow(dead_code)] // Each example takes what it needs.

use std::fs;
use std::path::Path;

use plimsoll::data::{Dataset, Images, Random, Split};

use super::Result;

/// Pictures that a program has made up, for want of data: each class has a colour and a stripe of its own, under noise.
pub fn synthetic(shape: [usize; 3], classes: usize, train: usize, test: usize) -> Result<Split<Images>> {
    let mut random = Random::new(42);
    let mut images = |count: usize| {
        let labels: Vec<i32> = (0..count).map(|index| (index % classes) as i32).collect();
        let mut pixels = Vec::with_capacity(count * shape.iter().product::<usize>());
        for class in labels.iter().map(|label| *label as usize) {
            for (channel, row) in (0..shape[0]).flat_map(|channel| (0..shape[1]).map(move |row| (channel, row))) {
                let colour = 60 + (class * 67 + channel * 41) % 120;
                let is_stripe = row * classes / shape[1] == class;
                pixels
                    .extend((0..shape[2]).map(|_| (colour + if is_stripe { 40 } else { 0 } + random.below(36)) as u8));
            }
        }
        Images::new(shape, pixels, labels, (0..classes).map(|class| format!("made up {class}")))
    };
    Ok(Split { train: images(train)?, test: images(test)? })
}

/// Writes a sheet with a row for each class, its first `columns` pictures, as a PPM file: a format so simple that it needs
/// no library. With the feature `image-folder`, `plimsoll::data::write_samples_png` writes a PNG.
pub fn write_sheet(path: &Path, images: &Images, columns: usize) -> Result {
    let [channels, height, width] = *images.shape() else { return Err("pictures have three axes".into()) };
    let classes = images.classes().len();
    let mut sheet = vec![245; classes * (height + 1) * columns * (width + 1) * 3];
    for class in 0..classes {
        let of_class = (0..images.len()).filter(|index| images.labels()[*index] as usize == class);
        for (column, index) in of_class.take(columns).enumerate() {
            let image = images.image(index).ok_or("an index below the length")?;
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                let pixel = (class * (height + 1) + y) * columns * (width + 1) + column * (width + 1) + x;
                for rgb in 0..3 {
                    sheet[pixel * 3 + rgb] = image[(rgb % channels * height + y) * width + x];
                }
            }
        }
    }
    let mut file = format!("P6 {} {} 255\n", columns * (width + 1), classes * (height + 1)).into_bytes();
    file.append(&mut sheet);
    fs::write(path, file).map_err(|error| format!("{}: can't write: {error}", path.display()))?;
    println!("{columns} samples of each of {classes} classes: {}", path.display());
    Ok(())
}
