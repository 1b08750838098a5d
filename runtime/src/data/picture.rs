//! One picture from its file to the bytes of a sample.

use std::path::Path;

use image::imageops::{self, FilterType};
use image::{ImageReader, RgbImage};

use super::{Colour, Error};

/// The largest side that pictures are resized to.
pub(super) const LARGEST: usize = 1 << 14;

/// Decodes, resizes the shorter side to `resize`, cuts a square of `crop` out of the middle, and writes it plane by plane.
pub(super) fn read(path: &Path, resize: usize, crop: usize, colour: Colour, sample: &mut [u8]) -> Result<(), Error> {
    let picture = |problem: String| Error::Picture { path: path.to_owned(), problem };
    let reader = ImageReader::open(path).and_then(ImageReader::with_guessed_format).map_err(Error::io(path, "open"))?;
    // The decoder's own limits keep a header from asking for absurd amounts of memory.
    let decoded = reader.decode().map_err(|error| picture(format!("it can't be decoded: {error}")))?;
    let rgb = decoded.into_rgb8();
    let (width, height) = rgb.dimensions();
    if width == 0 || height == 0 {
        return Err(picture(format!("it has no pixels: {width} x {height}")));
    }
    let (width, height) = cover(width, height, resize as u32);
    if u64::from(width) * u64::from(height) > 1 << 28 {
        return Err(picture(format!("it is too narrow: resized, it would have {width} x {height} pixels")));
    }
    // Triangle weights as wide as the reduction: Pillow's, and so torchvision's, bilinear filter.
    let rgb = match rgb.dimensions() == (width, height) {
        true => rgb,
        false => imageops::resize(&rgb, width, height, FilterType::Triangle),
    };
    write(&rgb, crop as u32, colour, sample);
    Ok(())
}

/// The size whose shorter side is `size`, the longer one rounded down, as torchvision's `Resize` has it.
fn cover(width: u32, height: u32, size: u32) -> (u32, u32) {
    let longer =
        |long: u32, short: u32| u32::try_from(u64::from(size) * u64::from(long) / u64::from(short)).unwrap_or(u32::MAX);
    if width <= height { (size, longer(height, width)) } else { (longer(width, height), size) }
}

/// Where a window of `crop` begins within `size`: half of the rest, rounded to even as Python's `round` does.
fn middle(size: u32, crop: u32) -> u32 {
    let rest = size - crop;
    let half = rest / 2;
    if rest % 2 == 1 && half % 2 == 1 { half + 1 } else { half }
}

fn write(rgb: &RgbImage, crop: u32, colour: Colour, sample: &mut [u8]) {
    let (left, top) = (middle(rgb.width(), crop), middle(rgb.height(), crop));
    let plane = (crop * crop) as usize;
    for y in 0..crop {
        for x in 0..crop {
            let [r, g, b] = rgb.get_pixel(left + x, top + y).0;
            let place = (y * crop + x) as usize;
            match colour {
                Colour::Grey => sample[place] = grey(r, g, b),
                Colour::Rgb => {
                    sample[place] = r;
                    sample[plane + place] = g;
                    sample[2 * plane + place] = b;
                }
            }
        }
    }
}

/// Pillow's conversion: ITU-R 601 weights in 16-bit fixed point.
fn grey(r: u8, g: u8, b: u8) -> u8 {
    ((u32::from(r) * 19_595 + u32::from(g) * 38_470 + u32::from(b) * 7_471 + 0x8000) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_torchvision_has_them() {
        assert_eq!(cover(640, 480, 256), (341, 256));
        assert_eq!(cover(480, 640, 256), (256, 341));
        assert_eq!(cover(1, u32::MAX, 256), (256, u32::MAX));
        // round(0.5) = 0, round(1.5) = 2, round(58.5) = 58.
        assert_eq!([middle(11, 10), middle(13, 10), middle(341, 224), middle(224, 224)], [0, 2, 58, 0]);
        assert_eq!([grey(255, 255, 255), grey(255, 0, 0), grey(0, 255, 0), grey(0, 0, 255)], [255, 76, 150, 29]);
    }
}
