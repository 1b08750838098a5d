//! A picture that shows what is in a dataset.

use std::path::Path;

use image::{Rgb, RgbImage};

use super::{Dataset, Error};

/// An element as the brightness of a pixel.
pub trait Shade {
    /// From 0, black, to 255, white.
    fn shade(self) -> u8;
}

impl Shade for u8 {
    fn shade(self) -> u8 {
        self
    }
}

impl Shade for f32 {
    /// 0 is black and 1 is white.
    fn shade(self) -> u8 {
        (self.clamp(0.0, 1.0) * 255.0).round() as u8
    }
}

/// Pictures smaller than this are shown larger, each pixel as a square.
const SMALLEST: usize = 40;
const GAP: usize = 4;
const BACKGROUND: Rgb<u8> = Rgb([245, 245, 245]);

/// Writes a PNG with a row for each class: its first `columns` samples.
///
/// # Errors
/// Samples that are no pictures or can't be read, a picture that would be too large, a file that can't be written.
pub fn write_samples_png<D>(path: impl AsRef<Path>, dataset: &D, columns: usize) -> Result<(), Error>
where
    D: Dataset<Element: Shade, Target = i32>,
{
    let (channels, height, width) = match *dataset.shape() {
        [height, width] => (1, height, width),
        [channels @ (1 | 3), height, width] => (channels, height, width),
        ref shape => {
            return Err(Error::argument(
                format!("samples of shape {shape:?} are no pictures"),
                "a picture has the shape [1, height, width] or [3, height, width]",
            ));
        }
    };
    let rows = rows(dataset, columns)?;
    let scale = SMALLEST.div_ceil(height.min(width).max(1)).max(1);
    let (cell_height, cell_width) = (height.saturating_mul(scale), width.saturating_mul(scale));
    let side = |count: usize, cell: usize| count.checked_mul(cell.checked_add(GAP)?)?.checked_add(GAP);
    let sides = side(columns, cell_width).zip(side(rows.len(), cell_height));
    let Some((w, h)) = sides.filter(|(w, h)| w.max(h) <= &(1 << 15) && w * h <= 1 << 28) else {
        return Err(Error::argument(
            format!("{columns} columns and {} rows of {height} x {width} make too large a picture", rows.len()),
            "choose fewer columns, or a part of the dataset",
        ));
    };
    let mut sheet = RgbImage::from_pixel(w as u32, h as u32, BACKGROUND);
    let mut sample = vec![D::Element::default(); dataset.sample_len()];
    for (row, indices) in rows.iter().enumerate() {
        for (column, index) in indices.iter().enumerate() {
            dataset.read(*index, &mut sample)?;
            let (left, top) = (GAP + column * (cell_width + GAP), GAP + row * (cell_height + GAP));
            for y in 0..cell_height {
                for x in 0..cell_width {
                    let place = y / scale * width + x / scale;
                    let plane = |channel: usize| sample[channel % channels * height * width + place].shade();
                    sheet.put_pixel((left + x) as u32, (top + y) as u32, Rgb([plane(0), plane(1), plane(2)]));
                }
            }
        }
    }
    let path = path.as_ref();
    sheet.save_with_format(path, image::ImageFormat::Png).map_err(|error| match error {
        image::ImageError::IoError(source) => Error::io(path, "write")(source),
        other => Error::Picture { path: path.to_owned(), problem: format!("it can't be written: {other}") },
    })
}

/// The samples of each row.
fn rows<D: Dataset<Target = i32>>(dataset: &D, columns: usize) -> Result<Vec<Vec<usize>>, Error> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for index in 0..dataset.len() {
        let label = dataset.label(index)?;
        let Some(class) = usize::try_from(label).ok().filter(|class| *class < 1 << 15) else {
            return Err(Error::argument(
                format!("the label of sample {index} is {label}, which is no class"),
                "classes are counted from 0",
            ));
        };
        if rows.len() <= class {
            rows.resize(class + 1, Vec::new());
        }
        if rows[class].len() < columns {
            rows[class].push(index);
        }
        if rows.len() == dataset.classes().len() && rows.iter().all(|row| row.len() == columns) {
            break;
        }
    }
    if columns == 0 || rows.is_empty() {
        return Err(Error::argument("there is nothing to show", "give a dataset with samples, and one column or more"));
    }
    Ok(rows)
}
