//! Learns to read handwritten digits in a few seconds, in exactly the bytes that the compiler worked out.
//!
//! ```text
//! cargo run --release --example digits
//! cargo run --release --example digits -- --save digits.safetensors
//! cargo run --release --example digits -- --quick      # a shorter run, which checks what it has learnt
//! cargo run --release --features cuda --example digits -- --device cuda
//! ```
//!
//! `--device cpu` or `--device cuda` says where; without it, on a card if there is one. `--epochs N` trains for so long.
//! The 1,797 digits are embedded in the library: nothing is downloaded. Ctrl-C ends the training early; what was learnt by
//! then is tested and saved all the same.

mod support;

use std::process::ExitCode;

use plimsoll::data::{self, Loader, RandomCrop};
use plimsoll::learning_rate::OneCycle;
use plimsoll::{Trainer, network};
use support::{Arguments, Result};

network! {
    /// A small convolutional network for pictures of 8 x 8 grey pixels.
    #[train(batch = 32, optimizer = adamw(lr = 2e-3, weight_decay = 0.05), loss = cross_entropy(label_smoothing = 0.1))]
    #[budget(4 MB)]
    pub struct Digits(image: u8[1, 8, 8]) {
        const CLASSES = 10;

        // A batch travels as bytes; the network makes floats of them.
        normalize(mean = [0.305], std = [0.376]),
        ..Conv(32), ..Conv(32), maxpool2d(2),
        ..Conv(64), ..Conv(64), maxpool2d(2),
        flatten,
        dropout(0.3),
        fc: linear(CLASSES),
    }

    block Conv(channels) {
        conv2d(channels, kernel = 3, padding = 1, bias = false),
        batchnorm2d,
        relu,
    }
}

fn main() -> ExitCode {
    support::run(digits)
}

fn digits(mut arguments: Arguments) -> Result {
    let (quick, save, device) = (arguments.flag("--quick"), arguments.path("--save")?, arguments.device()?);
    let epochs = arguments.option("--epochs")?;
    arguments.finish()?;
    let (epochs, least) = match (epochs, quick) {
        (Some(epochs), _) => (epochs, 0.0),
        (None, true) => (8, 0.95),
        (None, false) => (24, 0.97),
    };

    println!("{}", Digits::summary());
    let digits = data::digits()?;
    // Shifted by a pixel either way, a digit is the same digit.
    let shifted = RandomCrop::new(8).padding(1);
    let mut train = Loader::new(digits.train, Digits::BATCH)?.shuffle(42).transform(shifted)?;
    let mut test = Loader::new(digits.test, Digits::BATCH)?;

    let mut trainer = Trainer::<Digits, _>::new(device, 42)?;
    trainer.set_schedule(OneCycle::new(4e-3, epochs * train.len() as u64));
    support::fit(&mut trainer, &mut train, &mut test, epochs, save.as_deref())?.require(least)
}
