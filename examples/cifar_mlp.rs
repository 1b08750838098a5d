//! A multi-layer perceptron learns CIFAR-10: what it costs, what the pictures look like, and how well it does.
//!
//! ```text
//! cargo run --release --example cifar_mlp -- --data FOLDER       # with cifar-10-binary.tar.gz, or what was in it
//! cargo run --release --features download --example cifar_mlp -- --download
//! cargo run --release --example cifar_mlp -- --quick             # on made-up pictures where there are no others
//! ```
//!
//! `--epochs N` trains for longer than one epoch, `--save FILE` keeps what was learnt, and `--samples FILE.ppm` says where
//! the sheet with samples goes. `--device cpu` or `--device cuda` says where it trains.

#[path = "zoo/cifar_mlp.rs"]
#[allow(dead_code)]
mod network;
mod support;

use std::process::ExitCode;

use network::CifarMlp;
use plimsoll::Trainer;
use plimsoll::data::{Cifar10, Dataset, Images, Loader, Split};
use support::samples::{synthetic, write_sheet};
use support::{Arguments, Result};

fn main() -> ExitCode {
    support::run(cifar_mlp)
}

fn cifar_mlp(mut arguments: Arguments) -> Result {
    let (quick, download) = (arguments.flag("--quick"), arguments.flag("--download"));
    let (data, save, samples) = (arguments.path("--data")?, arguments.path("--save")?, arguments.path("--samples")?);
    let (epochs, device) = (arguments.option("--epochs")?.unwrap_or(1), arguments.device()?);
    arguments.finish()?;

    println!("{}", CifarMlp::summary());
    let Split { train, test } = match data {
        Some(folder) => Cifar10::load(folder)?,
        None if download => fetch()?,
        None if quick => {
            println!("NO DATA WERE GIVEN: these pictures are made up, and any accuracy on them means nothing.\n");
            synthetic([3, 32, 32], 10, 800, 200)?
        }
        None => return Err("no data\nhelp: give --data FOLDER, or --download, or --quick for made-up pictures".into()),
    };
    let sheet = samples.unwrap_or_else(|| std::env::temp_dir().join("plimsoll_cifar_samples.ppm"));
    write_sheet(&sheet, &test, 10)?;

    let mut train = Loader::new(train.to_tensor(), CifarMlp::BATCH)?.shuffle(42);
    let mut test = Loader::new(test.to_tensor(), CifarMlp::BATCH)?;
    let mut trainer = Trainer::<CifarMlp, _>::new(device, 42)?;
    support::fit(&mut trainer, &mut train, &mut test, epochs, save.as_deref())?.require(0.3)
}

#[cfg(feature = "download")]
fn fetch() -> Result<Split<Images>> {
    Ok(Cifar10::cached()?)
}

#[cfg(not(feature = "download"))]
fn fetch() -> Result<Split<Images>> {
    Err("this was built without downloads\nhelp: cargo run --release --features download --example cifar_mlp -- --download".into())
}
