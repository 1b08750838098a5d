//! Learns to read handwritten digits, in exactly the memory that was planned. The digits are embedded in the library.
//!
//! ```text
//! cargo run --release --example digits
//! ```

use std::error::Error;

use plimsoll::data::{self, Batch, Loader};
use plimsoll::{Trainer, device, network};

network! {
    /// A small convolutional network for pictures of 8 x 8 pixels. They stay bytes until they are on the device.
    #[train(batch = 32, optimizer = adam(lr = 2e-3), loss = cross_entropy)]
    #[infer(batch = 899)]
    #[budget(train = 20 MB)]
    pub struct Digits(image: u8[1, 8, 8]) {
        const CLASSES = 10;

        normalize(mean = [0.305], std = [0.376]),
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(32, kernel = 3, padding = 1), relu,
        maxpool2d(2),
        flatten,
        linear(64), relu, dropout,
        linear(CLASSES),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let epochs = if std::env::args().any(|argument| argument == "--quick") { 3 } else { 20 };
    let digits = data::digits()?;
    let mut train = Loader::new(digits.train, Digits::BATCH)?.shuffle(42);
    let mut test = Loader::new(digits.test, 899)?;
    let test: Batch<u8> = test.epoch().next().expect("one batch of all")?;

    let mut trainer = Trainer::<Digits, _>::new(device::best()?, 42)?;
    assert_eq!(trainer.allocated_bytes(), Digits::PEAK_BYTES);
    println!("{} bytes planned, {} allocated\n", Digits::PEAK_BYTES, trainer.allocated_bytes());

    println!("epoch   training loss   accuracy on digits not seen");
    for epoch in 1..=epochs {
        let (mut sum, mut batches) = (0.0, 0);
        for batch in train.epoch() {
            let batch = batch?;
            sum += trainer.step(batch.inputs(), batch.targets())?;
            batches += 1;
        }
        let accuracy = trainer.evaluate([(test.inputs(), test.targets())])?.accuracy();
        println!("{epoch:>5}   {:>13.4}   {:>26.1}%", sum / batches as f32, 100.0 * accuracy);
    }
    Ok(())
}
