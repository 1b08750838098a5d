//! The loader: each sample once, the same order for the same seed, errors that arrive, threads that end.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_runtime::data::{
    Batch, Dataset, Error, Images, Loader, Normalize, RandomCrop, RandomHorizontalFlip, Split, Subset, TensorDataset,
    digits, train_test_split,
};
use proptest::prelude::*;

/// Sample `i` is `[i, -i]` with the label `i % 10`; what else it does is decided by the fields.
#[derive(Clone, Default)]
struct Numbers {
    len: usize,
    /// Reading takes up to this many microseconds, more or less at random.
    delay: u64,
    fails_at: Option<usize>,
    panics_at: Option<usize>,
    reads: Arc<AtomicUsize>,
}

impl Dataset for Numbers {
    type Element = f32;
    type Target = i32;

    fn len(&self) -> usize {
        self.len
    }

    fn shape(&self) -> &[usize] {
        &[2]
    }

    fn read(&self, index: usize, sample: &mut [f32]) -> Result<(), Error> {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed) as u64;
        if self.delay > 0 {
            thread::sleep(Duration::from_micros((index as u64 * 7919 + reads * 104_729) % self.delay));
        }
        if self.fails_at == Some(index) {
            let source = std::io::Error::other("bad sector");
            return Err(Error::Io { path: "disk/7.png".into(), action: "read", source });
        }
        assert_ne!(self.panics_at, Some(index), "sample {index} is cursed");
        sample.copy_from_slice(&[index as f32, -(index as f32)]);
        Ok(())
    }

    fn label(&self, index: usize) -> Result<i32, Error> {
        Ok(index as i32 % 10)
    }
}

fn numbers(len: usize) -> Numbers {
    Numbers { len, ..Numbers::default() }
}

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// The indices of each batch of the next epoch, checked against inputs and targets.
fn indices(loader: &mut Loader<Numbers>) -> Vec<Vec<usize>> {
    let batches = loader.epoch().map(|batch| {
        let batch = batch.unwrap();
        let inputs: Vec<f32> = batch.indices().iter().flat_map(|i| [*i as f32, -(*i as f32)]).collect();
        let targets: Vec<i32> = batch.indices().iter().map(|i| *i as i32 % 10).collect();
        assert_eq!((batch.inputs(), batch.targets()), (inputs.as_slice(), targets.as_slice()));
        assert_eq!(batch.len(), targets.len());
        batch.indices().to_vec()
    });
    batches.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_sample_once_in_the_same_order(
        len in 1usize..200, batch in 1usize..40, seed in any::<u64>(), workers in 1usize..5, delay in 0u64..60, drop_last: bool,
    ) {
        let quick = Loader::new(numbers(len), batch).unwrap().shuffle(seed).drop_last(drop_last);
        let slow = Loader::new(Numbers { delay, ..numbers(len) }, batch).unwrap().shuffle(seed).drop_last(drop_last);
        let (mut quick, mut slow) = (quick, slow.workers(threads(workers)));
        for _ in 0..2 {
            let batches = indices(&mut quick);
            prop_assert_eq!(batches.len(), quick.len());
            prop_assert_eq!(&batches, &indices(&mut slow));
            let size = batch.min(len);
            let full = batches.iter().filter(|batch| batch.len() == size).count();
            prop_assert_eq!(full, len / size);
            prop_assert_eq!(batches.len() - full, usize::from(!drop_last && len % size > 0));
            let seen: Vec<usize> = batches.concat();
            prop_assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
            prop_assert_eq!(seen.len(), if drop_last { full * size } else { len });
        }
    }

    #[test]
    fn splits_are_whole(len in 2usize..500, seed in any::<u64>(), fraction in 0.001f64..0.999) {
        let Ok(split) = train_test_split(numbers(len), seed, fraction) else {
            prop_assert!((len as f64 * fraction).ceil() >= len as f64);
            return Ok(());
        };
        prop_assert_eq!(split.test.len(), (len as f64 * fraction).ceil() as usize);
        let all: BTreeSet<usize> = split.train.indices().iter().chain(split.test.indices()).copied().collect();
        prop_assert_eq!((all.len(), split.train.len() + split.test.len()), (len, len));
        let again = train_test_split(numbers(len), seed, fraction).unwrap();
        prop_assert_eq!(again.test.indices(), split.test.indices());
    }
}

#[test]
fn orders() {
    let mut plain = Loader::new(numbers(10), 4).unwrap();
    assert_eq!(indices(&mut plain), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9]]);
    let shuffled = |seed| Loader::new(numbers(100), 100).unwrap().shuffle(seed);
    let mut loader = shuffled(1);
    let epochs = [indices(&mut loader), indices(&mut loader), indices(&mut loader)];
    assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
    assert_ne!(epochs[0], indices(&mut shuffled(2)));
    // To go on in the middle of a run.
    let mut later = shuffled(1);
    later.set_epoch(2);
    assert_eq!(indices(&mut later), epochs[2]);
    // After the last epoch of all comes the first.
    later.set_epoch(u64::MAX);
    indices(&mut later);
    assert_eq!(indices(&mut later), epochs[0]);
    // The order of a seed is a promise: runs are repeated by it.
    let mut small = Loader::new(numbers(8), 8).unwrap().shuffle(42);
    assert_eq!(indices(&mut small), [[5, 1, 7, 6, 0, 4, 2, 3]]);
}

#[test]
fn errors_arrive_with_sample_and_file() {
    for workers in 1..4 {
        let dataset = Numbers { fails_at: Some(13), ..numbers(100) };
        let mut loader = Loader::new(dataset, 5).unwrap().workers(threads(workers));
        let mut epoch = loader.epoch();
        assert!(epoch.next().unwrap().is_ok() && epoch.next().unwrap().is_ok());
        let error = epoch.next().unwrap().unwrap_err();
        assert!(matches!(error, Error::Sample { index: 13, .. }));
        assert_eq!(error.to_string(), "sample 13: disk/7.png: can't read: bad sector");
        assert!(epoch.next().is_none() && epoch.next().is_none());
        // The next epoch is none the worse.
        assert!(loader.epoch().next().unwrap().is_ok());
    }
}

#[test]
fn panics_arrive() {
    let mut loader = Loader::new(Numbers { panics_at: Some(7), ..numbers(20) }, 4).unwrap();
    let results: Vec<Result<Batch<f32>, Error>> = loader.epoch().collect();
    assert_eq!(results.len(), 2);
    let text = results[1].as_ref().unwrap_err().to_string();
    assert!(text.contains("sample 7 is cursed"), "{text}");
}

#[test]
fn a_dropped_epoch_ends_its_threads() {
    for workers in 1..4 {
        let dataset = Numbers { delay: 300, ..numbers(100_000) };
        let reads = dataset.reads.clone();
        let mut loader = Loader::new(dataset, 16).unwrap().shuffle(3).workers(threads(workers));
        for taken in 0..4 {
            let mut epoch = loader.epoch();
            epoch.by_ref().take(taken).for_each(|batch| assert!(batch.is_ok()));
            drop(epoch);
            // They were joined: nothing is read any more.
            let before = reads.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(2));
            assert_eq!(reads.load(Ordering::Relaxed), before);
        }
        assert!(reads.load(Ordering::Relaxed) < 4 * 16 * (4 + 3 * workers));
    }
}

/// The next batch is made while the caller works on the last.
#[test]
fn batches_are_prepared_ahead() {
    let dataset = numbers(1000);
    let reads = dataset.reads.clone();
    let mut loader = Loader::new(dataset, 10).unwrap();
    let mut epoch = loader.epoch();
    let _batch = epoch.next().unwrap().unwrap();
    for _ in 0..1000 {
        if reads.load(Ordering::Relaxed) >= 30 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    // The one at hand, one that waits, one that will.
    assert_eq!(reads.load(Ordering::Relaxed), 30);
}

/// Batches may be kept, beyond the epoch and the loader.
#[test]
fn batches_may_be_kept() {
    let mut loader = Loader::new(numbers(64), 4).unwrap().workers(threads(2));
    let kept: Vec<Batch<f32>> = loader.epoch().map(Result::unwrap).collect();
    let next: Vec<Batch<f32>> = loader.epoch().map(Result::unwrap).collect();
    drop(loader);
    for (batch, again) in kept.iter().zip(&next) {
        assert_eq!((batch.inputs(), batch.inputs()[0]), (again.inputs(), batch.indices()[0] as f32));
    }
}

#[test]
fn two_epochs_at_once() {
    let mut loader = Loader::new(numbers(40), 4).unwrap().shuffle(1);
    let (first, second) = (loader.epoch(), loader.epoch());
    let both = first.zip(second).map(|(a, b)| (a.unwrap().indices()[0], b.unwrap().indices()[0]));
    assert_eq!(both.count(), 10);
}

#[test]
fn arguments() {
    let error = |len, batch| Loader::new(numbers(len), batch).unwrap_err().to_string();
    assert!(error(10, 0).contains("the batch size is 0"));
    assert!(error(0, 1).contains("the dataset has no samples"));
    let mut huge = Loader::new(numbers(3), usize::MAX).unwrap();
    assert_eq!(indices(&mut huge), [[0, 1, 2]]);
    let text = Loader::new(numbers(3), 1).unwrap().transform(RandomCrop::new(2)).unwrap_err().to_string();
    assert!(text.contains("samples of shape [2]"), "{text}");
    let huge = RandomCrop::new(1 << 40).padding(1 << 40);
    let digits = Loader::new(digits().unwrap().test, 1).unwrap();
    assert!(digits.transform(huge).unwrap_err().to_string().contains("too many elements"));
    assert!(Subset::new(numbers(3), [0, 3]).unwrap_err().to_string().contains("no sample 3"));
    for fraction in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        let text = train_test_split(numbers(10), 1, fraction).unwrap_err().to_string();
        assert!(text.contains("help: give a fraction between 0 and 1"), "{text}");
    }
}

/// Sizes beyond all memory are errors.
#[test]
fn sizes_beyond_memory() {
    let mut loader = Loader::new(numbers(usize::MAX), 4).unwrap().workers(threads(usize::MAX));
    let mut epoch = loader.epoch();
    let text = epoch.next().unwrap().unwrap_err().to_string();
    assert!(text.contains("no memory for the order of 18446744073709551615 samples"), "{text}");
    assert!(epoch.next().is_none());
    let images = Images::new([usize::MAX, usize::MAX, 1], Vec::new(), Vec::new(), ["a"]);
    assert!(images.unwrap_err().to_string().contains("0 bytes are not 0 pictures of shape"));
}

/// A batch too large for any memory is an error, not the end of the process.
#[test]
fn no_memory() {
    struct Endless;
    impl Dataset for Endless {
        type Element = u8;
        type Target = i32;
        fn len(&self) -> usize {
            1 << 20
        }
        fn shape(&self) -> &[usize] {
            &[1 << 62]
        }
        fn read(&self, _: usize, _: &mut [u8]) -> Result<(), Error> {
            Ok(())
        }
        fn label(&self, _: usize) -> Result<i32, Error> {
            Ok(0)
        }
    }
    let mut loader = Loader::new(Endless, 64).unwrap();
    let mut epoch = loader.epoch();
    let text = epoch.next().unwrap().unwrap_err().to_string();
    assert!(text.contains("no memory for a batch of 64 samples"), "{text}");
    assert!(epoch.next().is_none());
}

/// What a sample draws depends on seed, epoch and sample alone.
#[test]
fn transforms_are_reproducible() {
    let load = |seed: u64, shuffle: bool, workers: usize, batch: usize| {
        let loader = Loader::new(digits().unwrap().test.to_tensor(), batch).unwrap().workers(threads(workers));
        let loader = if shuffle { loader.shuffle(seed) } else { loader.seed(seed) };
        let loader = loader.transform(RandomCrop::rectangle(6, 7).padding(1)).unwrap();
        let loader = loader.transform(RandomHorizontalFlip::default()).unwrap();
        let mut loader = loader.transform(Normalize::new([0.5], [0.5])).unwrap();
        assert_eq!(loader.shape(), [1, 6, 7]);
        [0, 1].map(|_| {
            let mut samples: Vec<(usize, Vec<f32>)> = Vec::new();
            for batch in loader.epoch() {
                let batch = batch.unwrap();
                let inputs = batch.inputs().chunks_exact(42).map(<[f32]>::to_vec);
                samples.extend(batch.indices().iter().copied().zip(inputs));
            }
            samples.sort_by_key(|(index, _)| *index);
            samples
        })
    };
    let reference = load(7, false, 1, 32);
    assert!(reference == load(7, true, 3, 17));
    assert!(reference[0] != reference[1] && reference != load(8, false, 1, 32));
    assert!(reference[0].iter().flat_map(|(_, sample)| sample).all(|x| (-1.0..=1.0).contains(x)));
}

#[test]
fn digits_are_the_published_ones() {
    let digits = digits().unwrap();
    assert_eq!((digits.train.len(), digits.test.len()), (898, 899));
    assert_eq!(digits.train.shape(), [1, 8, 8]);
    assert_eq!(digits.train.labels()[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    // The first row of the first zero: 0 0 5 13 9 1 0 0 of 16.
    let published = [0, 0, 5, 13, 9, 1, 0, 0];
    let bytes = &digits.train.image(0).unwrap()[..8];
    assert_eq!(bytes.iter().map(|byte| (u32::from(*byte) * 16 + 127) / 255).collect::<Vec<_>>(), published);
    let mut sample = [0.0; 64];
    digits.train.to_tensor().read(0, &mut sample).unwrap();
    for (x, value) in sample.iter().zip(published) {
        assert!((x - value as f32 / 16.0).abs() < 0.002);
    }
    let mut counts = [0; 10];
    digits.test.labels().iter().for_each(|label| counts[*label as usize] += 1);
    assert!(counts.iter().all(|count| (86..=93).contains(count)), "{counts:?}");
}

/// The loader takes what is shared, and bytes as well as floats.
#[test]
fn shared_bytes() {
    let test = Arc::new(digits().unwrap().test);
    let mut loader = Loader::new(test.clone(), 100).unwrap();
    let batch = loader.epoch().next().unwrap().unwrap();
    let inputs: &[u8] = batch.inputs();
    assert_eq!(inputs, &test.pixels()[..6400]);
}

/// Numbers as targets, several for each sample, arrive beside their samples, in parts of a dataset too.
#[test]
fn targets_that_are_numbers() {
    let inputs: Vec<f32> = (0..20u8).map(f32::from).collect();
    let targets: Vec<f32> = inputs.iter().map(|x| -x).collect();
    let dataset = TensorDataset::new([2], inputs, targets).unwrap();
    assert_eq!((dataset.len(), dataset.target_len(), dataset.label(3).unwrap()), (10, 2, -6.0));
    let Split { train, test } = train_test_split(dataset, 1, 0.3).unwrap();
    let mut loader = Loader::new(train, 4).unwrap().shuffle(1);
    let mut seen = Vec::new();
    for batch in loader.epoch() {
        let batch: Batch<f32, f32> = batch.unwrap();
        let negative: Vec<f32> = batch.inputs().iter().map(|x| -x).collect();
        assert_eq!((batch.targets(), batch.targets().len()), (negative.as_slice(), 2 * batch.len()));
        seen.extend(batch.inputs().chunks(2).map(|sample| sample[0] as usize / 2));
    }
    seen.extend_from_slice(test.indices());
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
}

#[test]
fn tensors_that_do_not_fit() {
    let text = |inputs, targets: usize| {
        TensorDataset::new([2], vec![0.0f32; inputs], vec![0i32; targets]).unwrap_err().to_string()
    };
    assert!(text(5, 2).starts_with("5 elements are no whole number of samples of shape [2]"), "{}", text(5, 2));
    assert!(text(6, 4).starts_with("4 elements of targets can't be shared among 3 samples"), "{}", text(6, 4));
    assert!(text(6, 0).starts_with("0 elements of targets can't be shared among 3 samples"), "{}", text(6, 0));
    assert!(text(0, 1).starts_with("1 elements of targets can't be shared among 0 samples"), "{}", text(0, 1));
    assert!(TensorDataset::new([0, 2], vec![0.0f32; 4], vec![0]).is_err());
    assert!(TensorDataset::new([usize::MAX, 2], vec![0.0f32; 4], vec![0]).is_err());

    let dataset = TensorDataset::new([2], vec![0u8; 6], vec![0.5f32; 6]).unwrap();
    assert!(dataset.read(3, &mut [0; 2]).is_err() && dataset.label(3).is_err());
    assert!(matches!(dataset.read(0, &mut [0; 3]), Err(Error::Length { expected: 2, given: 3 })));
    assert!(matches!(dataset.read_target(0, &mut [0.0]), Err(Error::TargetLength { expected: 2, given: 1 })));
    assert!(matches!(numbers(1).read_target(0, &mut [0; 2]), Err(Error::TargetLength { expected: 1, given: 2 })));
    let empty = TensorDataset::new([2], Vec::<f32>::new(), Vec::<i32>::new()).unwrap();
    assert!(Loader::new(empty, 1).unwrap_err().to_string().contains("no samples"));
}
