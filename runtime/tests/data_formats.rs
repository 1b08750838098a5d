//! The readers of IDX and CIFAR files: what they read, and what they say of damaged files.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::{Compression, write::GzEncoder};
use plimsoll_runtime::data::{Cifar10, Cifar100, Dataset, Error, FashionMnist, Idx, Images, Mnist};
use proptest::prelude::*;
use tempfile::TempDir;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, shape.len() as u8];
    shape.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// A folder with MNIST's four files, of 3 pictures to train and 2 to test.
fn mnist(suffix: &str, pack: impl Fn(&[u8]) -> Vec<u8>) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (part, count) in [("train", 3u32), ("t10k", 2)] {
        let pixels: Vec<u8> = (0..count * 784).map(|i| (i / 784 + i % 784) as u8).collect();
        let labels: Vec<u8> = (0..count as u8).collect();
        let write = |name: String, bytes: Vec<u8>| fs::write(folder.path().join(name + suffix), pack(&bytes)).unwrap();
        write(format!("{part}-images-idx3-ubyte"), idx(&[count, 28, 28], &pixels));
        write(format!("{part}-labels-idx1-ubyte"), idx(&[count], &labels));
    }
    folder
}

fn read_error(bytes: &[u8]) -> (Option<u64>, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, bytes).unwrap();
    let error = Idx::read(&path).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(path.to_str().unwrap()) && text.contains("\nhelp: "), "{text}");
    let offset = if let Error::Format { offset, .. } = error { Some(offset) } else { None };
    (offset, text)
}

#[test]
fn mnist_plain_and_packed() {
    for folder in [mnist("", <[u8]>::to_vec), mnist(".gz", gzip)] {
        let digits = Mnist::load(folder.path()).unwrap();
        assert_eq!((digits.train.len(), digits.test.len()), (3, 2));
        assert_eq!(digits.train.shape(), [1, 28, 28]);
        assert_eq!(digits.train.labels(), [0, 1, 2]);
        let mut sample = [0; 784];
        digits.train.read(2, &mut sample).unwrap();
        assert_eq!(sample[..3], [2, 3, 4]);
        let clothes = FashionMnist::load(folder.path()).unwrap();
        assert_eq!(clothes.test.classes()[1], "Trouser");
    }
}

/// As torchvision lays them out.
#[test]
fn mnist_of_torchvision() {
    let (files, folder) = (mnist("", <[u8]>::to_vec), TempDir::new().unwrap());
    fs::create_dir(folder.path().join("MNIST")).unwrap();
    fs::rename(files.path(), folder.path().join("MNIST/raw")).unwrap();
    assert_eq!(Mnist::load(folder.path()).unwrap().train.len(), 3);
}

#[test]
fn mnist_mistakes() {
    let folder = mnist("", <[u8]>::to_vec);
    let error = |name: &str, bytes: Option<&[u8]>| {
        let path = folder.path().join(name);
        let before = fs::read(&path).unwrap();
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = Mnist::load(folder.path()).unwrap_err().to_string();
        fs::write(&path, before).unwrap();
        error
    };
    let labels = "train-labels-idx1-ubyte";
    let text = error(labels, None);
    assert!(text.contains("there is no train-labels-idx1-ubyte or") && text.contains("`Mnist::download`"), "{text}");
    let text = error(labels, Some(&idx(&[3], &[0, 11, 2])));
    assert!(text.contains("train-labels-idx1-ubyte: byte 9: the label of sample 1 is 11, but there are 10"), "{text}");
    let text = error(labels, Some(&idx(&[2], &[0, 1])));
    assert!(text.contains("byte 4: 2 labels for the 3 pictures"), "{text}");
    let text = error(labels, Some(&idx(&[1, 1, 1], &[0])));
    assert!(
        text.contains("byte 3: the file has 3 dimensions, where labels have 1") && text.contains("exchanged"),
        "{text}"
    );
    let text = error("t10k-images-idx3-ubyte", Some(&idx(&[2, 8, 8], &[0; 128])));
    assert!(text.contains("byte 8: the pictures are 8 x 8, where 28 x 28 are expected"), "{text}");
}

#[test]
fn idx_mistakes() {
    let good = idx(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let (offset, text) = read_error(&[0xca, 0xfe, 0, 1, 9]);
    assert!(offset == Some(0) && text.contains("the magic number is 0xcafe0001"), "{text}");
    let (offset, text) = read_error(&[0, 0, 0x0d, 1, 0, 0, 0, 0]);
    assert!(offset == Some(2) && text.contains("of type 0x0d, where 0x08"), "{text}");
    let (offset, text) = read_error(&[0, 0, 8, 0]);
    assert!(offset == Some(3) && text.contains("0 dimensions"), "{text}");
    let (offset, text) = read_error(&good[..6]);
    assert!(offset == Some(6) && text.contains("the file ends here, 2 bytes short of the size"), "{text}");
    // One byte short, all the same to a header that a few bytes more would satisfy.
    let (offset, text) = read_error(&good[..17]);
    assert!(offset == Some(17) && text.contains("1 bytes short of the values"), "{text}");
    let (offset, text) = read_error(&[good.as_slice(), &[7]].concat());
    assert!(offset == Some(18) && text.contains("more bytes follow"), "{text}");
    let (offset, text) = read_error(&idx(&[u32::MAX, 28, 28], &[0; 9]));
    assert!(offset == Some(4) && text.contains("dimension 0 has the size 4294967295"), "{text}");
    let (offset, text) = read_error(&idx(&[2, u32::MAX, u32::MAX, u32::MAX], &[0; 9]));
    assert!(offset == Some(8) && text.contains("dimension 1 has the size 4294967295"), "{text}");
    assert!(read_error(&[]).1.contains("byte 0: the file ends here"));
}

#[test]
fn packed_mistakes() {
    let packed = gzip(&idx(&[100, 100], &[5; 10_000]));
    let (offset, text) = read_error(&packed[..packed.len() / 2]);
    assert!(offset.is_some() && text.contains("of the unpacked data: the compressed data end before"), "{text}");
    // The checksum at the end.
    let mut wrong = packed.clone();
    let place = wrong.len() - 6;
    wrong[place] ^= 1;
    assert!(read_error(&wrong).1.contains("the compressed data are damaged"));
    // A header that no file of this length can satisfy, even packed.
    let (offset, text) = read_error(&gzip(&idx(&[u32::MAX, 1000], &[])));
    assert!(offset == Some(4) && text.contains("more than a file of this length"), "{text}");
}

#[test]
fn not_a_file() {
    let folder = TempDir::new().unwrap();
    let text = Idx::read(folder.path().join("nothing")).unwrap_err().to_string();
    assert!(text.contains("can't open") && text.contains("help: check the path"), "{text}");
    let text = Idx::read(folder.path()).unwrap_err().to_string();
    assert!(text.contains("folder"), "{text}");
}

/// A record: its labels and pixels that count up from `first`.
fn record(labels: &[u8], first: u8) -> Vec<u8> {
    labels.iter().copied().chain((0..3072).map(|i| first.wrapping_add(i as u8))).collect()
}

fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn cifar_10() -> Vec<(&'static str, Vec<u8>)> {
    let names = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"];
    let path = |name: &str| &*format!("cifar-10-batches-bin/{name}.bin").leak();
    // Out of order, to see that names count and not places.
    let files = names.iter().enumerate().rev();
    files.map(|(i, name)| (path(name), [record(&[i as u8], i as u8), record(&[9], 0)].concat())).collect()
}

fn write_folder(folder: &Path, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn cifar_packed_and_extracted() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("cifar-10-binary.tar.gz");
    fs::write(&archive, gzip(&tar(&cifar_10()))).unwrap();
    let extracted = TempDir::new().unwrap();
    write_folder(extracted.path(), &cifar_10());
    let inner = extracted.path().join("cifar-10-batches-bin");
    for path in [archive.as_path(), folder.path(), extracted.path(), &inner] {
        let cifar = Cifar10::load(path).unwrap();
        assert_eq!(cifar.train.labels(), [0, 9, 1, 9, 2, 9, 3, 9, 4, 9]);
        assert_eq!(cifar.test.labels(), [5, 9]);
        assert_eq!(cifar.train.image(4).unwrap(), &record(&[], 2));
        assert_eq!(cifar.train.shape(), [3, 32, 32]);
        assert_eq!(cifar.train.classes()[5], "dog");
    }
}

#[test]
fn cifar_100_classes_and_superclasses() {
    let folder = TempDir::new().unwrap();
    write_folder(folder.path(), &[("train.bin", record(&[19, 99], 3)), ("test.bin", record(&[0, 4], 5))]);
    let fine = Cifar100::load(folder.path()).unwrap();
    assert_eq!((fine.train.labels(), fine.test.labels()), ([99].as_slice(), [4].as_slice()));
    let coarse = Cifar100::load_superclasses(folder.path()).unwrap();
    assert_eq!((coarse.train.labels(), coarse.test.labels()), ([19].as_slice(), [0].as_slice()));
    assert_eq!((fine.test.classes()[4].as_str(), coarse.test.classes()[0].as_str()), ("beaver", "aquatic_mammals"));
    assert_eq!(fine.train.image(0).unwrap(), &record(&[], 3));
}

#[test]
fn cifar_mistakes() {
    let folder = TempDir::new().unwrap();
    let text = Cifar10::load(folder.path()).unwrap_err().to_string();
    assert!(text.contains("cifar-10-binary.tar.gz") && text.contains("`Cifar10::download`"), "{text}");
    write_folder(folder.path(), &[("train.bin", record(&[19, 100], 3)), ("test.bin", record(&[0, 4], 5))]);
    let text = Cifar100::load(folder.path()).unwrap_err().to_string();
    assert!(text.contains("train.bin: byte 1: the label of sample 0 is 100, but there are 100"), "{text}");
    write_folder(folder.path(), &[("train.bin", [record(&[0, 1], 3), record(&[20, 1], 3)].concat())]);
    let text = Cifar100::load(folder.path()).unwrap_err().to_string();
    assert!(text.contains("train.bin: byte 3074: the label of sample 1 is 20, but there are 20"), "{text}");
    write_folder(folder.path(), &[("train.bin", record(&[0, 1], 3)[..3000].to_vec())]);
    let text = Cifar100::load(folder.path()).unwrap_err().to_string();
    assert!(text.contains("byte 3000: the file ends here, 74 bytes short of a record"), "{text}");
    write_folder(folder.path(), &[("train.bin", Vec::new())]);
    assert!(Cifar100::load(folder.path()).unwrap_err().to_string().contains("the file is empty"));
}

#[test]
fn archive_mistakes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cifar-10-binary.tar.gz");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let text = Cifar10::load(&path).unwrap_err().to_string();
        assert!(text.contains("cifar-10-binary.tar.gz") && text.contains("\nhelp: "), "{text}");
        text
    };
    assert!(error(b"<html>404</html>").contains("this is no gzip file"));
    assert!(error(b"").contains("this is no gzip file"));
    let text = error(&gzip(&tar(&cifar_10()[1..])));
    assert!(text.contains("the archive has no test_batch.bin"), "{text}");
    let whole = gzip(&tar(&cifar_10()));
    let text = error(&whole[..whole.len() / 2]);
    assert!(text.contains("cut short"), "{text}");
    // A tar cut short inside a whole gzip; a header that promises more than there is.
    let text = error(&gzip(&tar(&cifar_10())[..2000]));
    assert!(text.contains("cut short"), "{text}");
    let mut files = cifar_10();
    files[0].1.push(1);
    let text = error(&gzip(&tar(&files)));
    assert!(
        text.contains("test_batch.bin: byte 6147 of the unpacked data: the file ends here, 3072 bytes short"),
        "{text}"
    );
    let text = error(&gzip(&[7; 2000]));
    assert!(text.contains("the archive is damaged"), "{text}");
}

#[test]
fn images_check_their_arguments() {
    let error = |shape, pixels: usize, labels: Vec<i32>| {
        Images::new(shape, vec![0; pixels], labels, ["a", "b"]).unwrap_err().to_string()
    };
    assert!(error([1, 2, 2], 7, vec![0, 1]).contains("7 bytes are not 2 pictures"));
    assert!(error([1, 0, 2], 0, vec![0]).contains("0 bytes are not"));
    assert!(error([usize::MAX, 3, 2], 7, vec![0, 1]).contains("7 bytes are not"));
    assert!(error([1, 1, 1], 2, vec![0, 2]).contains("the label of sample 1 is 2, but there are 2 classes"));
    assert!(error([1, 1, 1], 2, vec![-1, 0]).contains("the label of sample 0 is -1"));
    let images = Images::new([1, 1, 2], vec![1, 2], vec![0], ["a"]).unwrap();
    assert!(images.read(1, &mut [0; 2]).unwrap_err().to_string().contains("there is no sample 1: the dataset has 1"));
    assert!(images.read(usize::MAX, &mut [0; 2]).is_err() && images.label(1).is_err());
    assert!(images.read(0, &mut [0; 3]).unwrap_err().to_string().contains("a sample has 2 elements"));
    assert!(images.to_tensor().read(0, &mut [0.0; 1]).is_err());
}

/// Whatever these readers are given, they come to an end without a panic.
fn read_all(bytes: &[u8]) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, bytes).unwrap();
    let _ = Idx::read(&path);
    let _ = Images::from_idx(&path, &path, ["a"]);
    let _ = Cifar10::load(&path);
    for name in ["train.bin", "test.bin"] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let _ = Cifar100::load(folder.path());
}

fn mutated(mut bytes: Vec<u8>, changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    for (place, value) in changes {
        let place = place % bytes.len();
        bytes[place] = *value;
    }
    bytes.truncate(bytes.len() - cut % bytes.len());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_bytes_never_panic(
        prefix in prop::sample::select(vec![&[][..], &[0, 0, 8], &[0, 0, 8, 3, 0, 0], &[0x1f, 0x8b, 8, 0]]),
        bytes in prop::collection::vec(any::<u8>(), 0..4000),
        pack in any::<bool>(),
    ) {
        let bytes = [prefix, &bytes].concat();
        read_all(&if pack { gzip(&bytes) } else { bytes });
    }

    #[test]
    fn damaged_archives_never_panic(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8),
        headers in any::<bool>(),
        cut in prop::option::of(any::<usize>()),
        before in any::<bool>(),
    ) {
        let archive = tar(&cifar_10()[..2]);
        // Into the headers of the archive, which are few among the pixels.
        let changes: Vec<_> = changes.into_iter().map(|(place, value)| (if headers { place % 512 } else { place }, value)).collect();
        let bytes = if before {
            gzip(&mutated(archive, &changes, cut.unwrap_or(0)))
        } else {
            mutated(gzip(&archive), &changes, cut.unwrap_or(0))
        };
        read_all(&bytes);
    }

    #[test]
    fn idx_round_trip(shape in prop::collection::vec(0usize..6, 1..6), seed in any::<u8>(), packed in any::<bool>()) {
        let length: usize = shape.iter().product();
        let idx = Idx { shape, values: (0..length).map(|i| seed.wrapping_mul(i as u8).wrapping_add(seed)).collect() };
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(if packed { "a.gz" } else { "a" });
        idx.write(&path).unwrap();
        prop_assert_eq!(fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]), packed);
        prop_assert_eq!(Idx::read(&path).unwrap(), idx);
    }
}

#[test]
fn idx_that_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    let write =
        |shape: Vec<usize>, values| Idx { shape, values }.write(folder.path().join("a")).unwrap_err().to_string();
    assert!(write(vec![2, 2], vec![0; 3]).contains("3 values don't have the shape [2, 2]"));
    assert!(write(vec![], vec![0]).contains("shape []"));
    assert!(write(vec![1; 256], vec![0]).contains("1 values"));
    assert!(write(vec![1 << 32, 0], vec![]).contains("can't express the size 4294967296"));
}
