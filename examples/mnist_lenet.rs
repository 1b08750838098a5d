//! LeNet learns to read the digits of MNIST.
//!
//! ```text
//! cargo run --release --example mnist_lenet -- --data FOLDER     # with the four files, plain or .gz
//! cargo run --release --features download --example mnist_lenet -- --download
//! cargo run --release --example mnist_lenet -- --quick           # on the small embedded digits, enlarged
//! ```
//!
//! `--epochs N` trains for other than five epochs, and `--save FILE` keeps what was learnt. `--device cpu` or
//! `--device cuda` says where it trains.

#[path = "zoo/lenet.rs"]
#[allow(dead_code)]
mod network;
mod support;

use std::process::ExitCode;

use network::LeNet;
use plimsoll::Trainer;
use plimsoll::data::{self, Dataset, Images, Loader, Mnist, Split};
use support::{Arguments, Result};

fn main() -> ExitCode {
    support::run(mnist_lenet)
}

fn mnist_lenet(mut arguments: Arguments) -> Result {
    let (quick, download) = (arguments.flag("--quick"), arguments.flag("--download"));
    let (data, save) = (arguments.path("--data")?, arguments.path("--save")?);
    let (epochs, device) = (arguments.option("--epochs")?, arguments.device()?);
    arguments.finish()?;

    println!("{}", LeNet::summary());
    let mut trainer = Trainer::<LeNet, _>::new(device, 42)?;
    let (split, epochs, least) = match data {
        Some(folder) => (Mnist::load(folder)?, epochs.unwrap_or(5), 0.97),
        None if download => (fetch()?, epochs.unwrap_or(5), 0.97),
        None if quick => {
            println!("NO DATA WERE GIVEN: these are the 1,797 embedded digits of 8 x 8 pixels, enlarged; not MNIST.\n");
            // So few samples need larger steps.
            trainer.set_learning_rate(0.05)?;
            let digits = data::digits()?;
            (Split { train: enlarged(&digits.train)?, test: enlarged(&digits.test)? }, epochs.unwrap_or(12), 0.85)
        }
        None => {
            return Err("no data\nhelp: give --data FOLDER, or --download, or --quick for the embedded digits".into());
        }
    };
    let mut train = Loader::new(split.train.to_tensor(), LeNet::BATCH)?.shuffle(42);
    let mut test = Loader::new(split.test.to_tensor(), LeNet::BATCH)?;
    support::fit(&mut trainer, &mut train, &mut test, epochs, save.as_deref())?.require(least)
}

/// 8 x 8 pixels as squares of 3 x 3 in the middle of 28 x 28.
fn enlarged(digits: &Images) -> Result<Images> {
    let mut pixels = vec![0; digits.len() * 28 * 28];
    for (large, small) in pixels.chunks_exact_mut(28 * 28).zip(digits.pixels().chunks_exact(8 * 8)) {
        for (y, x) in (0..24).flat_map(|y| (0..24).map(move |x| (y, x))) {
            large[(y + 2) * 28 + x + 2] = small[y / 3 * 8 + x / 3];
        }
    }
    Ok(Images::new([1, 28, 28], pixels, digits.labels().to_vec(), digits.classes().to_vec())?)
}

#[cfg(feature = "download")]
fn fetch() -> Result<Split<Images>> {
    Ok(Mnist::cached()?)
}

#[cfg(not(feature = "download"))]
fn fetch() -> Result<Split<Images>> {
    Err("this was built without downloads\nhelp: cargo run --release --features download --example mnist_lenet -- --download".into())
}
