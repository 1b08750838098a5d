//! Folders of pictures, and pictures of samples.
#![cfg(feature = "image-folder")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use image::{DynamicImage, GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use plimsoll_runtime::data::{Colour, Dataset, ImageFolder, Loader, digits, write_samples_png};
use tempfile::TempDir;

/// A picture with a soft gradient, which every filter must keep.
fn gradient(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(x * 255 / width) as u8, (y * 255 / height) as u8, 77]))
}

fn save(folder: &Path, name: &str, picture: impl Into<DynamicImage>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let format = ImageFormat::from_path(&path).unwrap();
    picture.into().save_with_format(path, format).unwrap();
}

#[test]
fn classes_files_and_forms() {
    let folder = TempDir::new().unwrap();
    save(folder.path(), "dogs/2.png", gradient(40, 20));
    save(folder.path(), "dogs/10.JPG", gradient(20, 60));
    save(folder.path(), "cats/a.jpeg", gradient(20, 20));
    save(folder.path(), "cats/b.png", GrayImage::from_pixel(30, 30, Luma([200])));
    save(folder.path(), "cats/c.png", RgbaImage::from_pixel(30, 30, Rgba([1, 2, 3, 128])));
    fs::write(folder.path().join("cats/notes.txt"), "no picture").unwrap();
    fs::write(folder.path().join("README.md"), "no class").unwrap();

    let pictures = ImageFolder::open(folder.path(), 10, Colour::Rgb).unwrap();
    assert_eq!(pictures.classes(), ["cats", "dogs"]);
    assert_eq!((pictures.len(), pictures.shape()), (5, [3, 10, 10].as_slice()));
    let labels: Vec<i32> = (0..5).map(|index| pictures.label(index).unwrap()).collect();
    assert_eq!(labels, [0, 0, 0, 1, 1]);
    assert!(pictures.path(3).unwrap().ends_with("dogs/10.JPG"));
    let mut sample = [0; 300];
    pictures.read(2, &mut sample).unwrap();
    assert_eq!([sample[0], sample[100], sample[299]], [1, 2, 3]);
    pictures.read(1, &mut sample).unwrap();
    assert_eq!(sample, [200; 300]);
    // 40 x 20 becomes 20 x 10, and the middle 10 columns are kept.
    pictures.read(4, &mut sample).unwrap();
    for x in 0..10 {
        let expected = 255.0 * (2.0 * (x as f32 + 5.0) + 0.5) / 40.0;
        assert!((f32::from(sample[x]) - expected).abs() < 2.0, "{} for {expected}", sample[x]);
        assert_eq!(sample[200 + x], 77);
    }

    let grey = ImageFolder::open(folder.path(), 10, Colour::Grey).unwrap();
    assert_eq!(grey.shape(), [1, 10, 10]);
    let mut sample = [0; 100];
    grey.read(1, &mut sample).unwrap();
    assert_eq!(sample, [200; 100]);

    // Decoded by several threads, in order.
    let mut loader = Loader::new(pictures, 2).unwrap().workers(NonZeroUsize::new(3).unwrap());
    let targets: Vec<i32> = loader.epoch().flat_map(|batch| batch.unwrap().targets().to_vec()).collect();
    assert_eq!(targets, labels);
}

/// Pictures that are large enough are cut, not blurred: the middle of what torchvision's Resize(20), CenterCrop(9) leave.
#[test]
fn resize_and_crop() {
    let folder = TempDir::new().unwrap();
    save(folder.path(), "a/1.png", RgbImage::from_fn(20, 31, |x, y| Rgb([x as u8, y as u8, 0])));
    let pictures = ImageFolder::open(folder.path(), 9, Colour::Rgb).unwrap().resize(20).unwrap();
    let mut sample = [0; 243];
    pictures.read(0, &mut sample).unwrap();
    // (20 - 9) / 2 = 5.5 rounds to 6, the even one; (31 - 9) / 2 = 11.
    assert_eq!((sample[0], sample[81]), (6, 11));
    let text = ImageFolder::open(folder.path(), 9, Colour::Rgb).unwrap().resize(8).unwrap_err().to_string();
    assert!(text.contains("9 x 9 can't be cut out of"), "{text}");
}

/// What Pillow 13 makes of the same picture: `im.resize((7, 5), Image.BILINEAR).crop((2, 0, 6, 4))`.
#[test]
fn as_pillow_does() {
    const PILLOW: [u8; 48] = [
        155, 148, 94, 74, 124, 95, 131, 146, 122, 155, 124, 95, 97, 77, 137, 161, 63, 131, 167, 108, 79, 147, 97, 95,
        98, 166, 116, 114, 117, 185, 135, 133, 33, 48, 64, 55, 152, 113, 156, 152, 98, 118, 85, 123, 138, 138, 141,
        112,
    ];
    let folder = TempDir::new().unwrap();
    let pixel = |x: u32, y: u32| [x * 37 + y * 91, x * x * 5 + y * 13, x * y * 29].map(|value| (value % 256) as u8);
    save(folder.path(), "a/1.png", RgbImage::from_fn(11, 7, |x, y| Rgb(pixel(x, y))));
    let pictures = ImageFolder::open(folder.path(), 4, Colour::Rgb).unwrap().resize(5).unwrap();
    let mut sample = [0; 48];
    pictures.read(0, &mut sample).unwrap();
    // Pillow rounds between its two passes, and to fixed point.
    assert!(sample.iter().zip(PILLOW).all(|(a, b)| a.abs_diff(b) <= 1), "{sample:?}");
}

#[test]
fn mistakes() {
    let folder = TempDir::new().unwrap();
    let open = |size| ImageFolder::open(folder.path(), size, Colour::Rgb);
    let text = open(8).unwrap_err().to_string();
    assert!(text.contains("there are no folders") && text.contains("for each class"), "{text}");
    fs::create_dir(folder.path().join("empty")).unwrap();
    let text = open(8).unwrap_err().to_string();
    assert!(text.contains("empty: there are no pictures"), "{text}");
    assert!(open(0).unwrap_err().to_string().contains("of size 0") && open(usize::MAX).is_err());
    let text = ImageFolder::open(folder.path().join("nowhere"), 8, Colour::Rgb).unwrap_err().to_string();
    assert!(text.contains("nowhere: can't read"), "{text}");

    save(folder.path(), "empty/good.png", gradient(9, 9));
    let good = fs::read(folder.path().join("empty/good.png")).unwrap();
    for (name, bytes) in [
        ("cut.png", good[..good.len() / 2].to_vec()),
        ("nothing.png", Vec::new()),
        ("text.jpg", b"<html>404</html>".to_vec()),
        // A header of 2^31 - 1 pixels a side.
        ("huge.png", [&good[..16], &[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff], &good[24..]].concat()),
    ] {
        let path = folder.path().join("empty").join(name);
        fs::write(&path, bytes).unwrap();
        let mut loader = Loader::new(open(8).unwrap(), 1).unwrap();
        let errors: Vec<String> = loader.epoch().filter_map(|batch| Some(batch.err()?.to_string())).collect();
        assert_eq!(errors.len(), 1, "{name}");
        assert!(errors[0].starts_with("sample ") && errors[0].contains(path.to_str().unwrap()), "{}", errors[0]);
        fs::remove_file(path).unwrap();
    }
    // So narrow that covering the square would take 4 billion pixels.
    save(folder.path(), "empty/narrow.png", GrayImage::new(1, 60_000));
    let text = open(8000).unwrap().read(1, &mut vec![0; 3 * 8000 * 8000]).unwrap_err().to_string();
    assert!(text.contains("narrow.png: it is too narrow"), "{text}");
}

#[test]
fn samples() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("digits.png");
    let digits = digits().unwrap();
    write_samples_png(&path, &digits.train, 12).unwrap();
    let bytes = image::open(&path).unwrap().into_rgb8();
    // 8 x 8 pixels are shown as 40 x 40.
    assert_eq!(bytes.dimensions(), (4 + 12 * 44, 4 + 10 * 44));
    let first = digits.train.image(0).unwrap();
    for (x, y) in [(0, 0), (3, 0), (2, 1), (5, 7)] {
        assert_eq!(bytes.get_pixel(4 + 5 * x + 2, 4 + 5 * y + 2).0, [first[(8 * y + x) as usize]; 3]);
    }
    write_samples_png(&path, &digits.train.clone().to_tensor(), 12).unwrap();
    assert_eq!(image::open(&path).unwrap().into_rgb8(), bytes);
    assert!(write_samples_png(&path, &digits.train, 0).unwrap_err().to_string().contains("nothing to show"));
    assert!(write_samples_png(&path, &digits.train, usize::MAX).unwrap_err().to_string().contains("too large"));
    let text = write_samples_png(folder.path().join("no/folder.png"), &digits.train, 1).unwrap_err().to_string();
    assert!(text.contains("can't write"), "{text}");
}
