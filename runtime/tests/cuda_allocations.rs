//! Counts the host's allocations: a step on CUDA makes none, neither here nor in cudarc. What the driver does on its own
//! side, and the emulator in its place, is not counted.

mod card;
mod common;
#[allow(dead_code)] // The arena is not the host's.
mod counting;

use std::sync::atomic::Ordering::SeqCst;

use card::Card;
use common::{Batch, Recipe, network};
use counting::ALLOCATIONS;
use plimsoll_runtime::Trainer;
use plimsoll_runtime::philox::{Purpose, Stream};

/// A program of its own, without the test harness, whose thread would allocate meanwhile.
fn main() {
    let card = Card::new();
    let numbers = Stream::new(4, Purpose::Shuffle, 0, 0);
    for case in 0..16u64 {
        let words = (0..4).flat_map(|block| numbers.words(case * 4 + block));
        let graph = network(&Recipe {
            layers: words.map(|word| u64::from(word) << 32 | u64::from(word.rotate_left(7))).collect(),
            batch: 3,
            optimizer: case as usize % 9,
            loss: case as usize % 6,
            accumulate: 1 + case % 2,
            clip: case.is_multiple_of(3),
            smooth: true,
        });
        let batch = Batch::new(&graph, 3, 0);
        let (inputs, targets) = (batch.slices(), batch.targets(&graph));
        let mut trainer = Trainer::from_plan(&graph.plan().unwrap(), card.cuda(), 7).unwrap();
        // The first ones look up functions of the libraries.
        for _ in 0..2 {
            trainer.step(inputs.as_slice(), targets).unwrap();
            trainer.predict(inputs.as_slice()).unwrap();
        }
        let before = ALLOCATIONS.load(SeqCst);
        for _ in 0..4 {
            trainer.step(inputs.as_slice(), targets).unwrap();
            trainer.predict(inputs.as_slice()).unwrap();
        }
        assert_eq!(ALLOCATIONS.load(SeqCst) - before, 0, "steps of case {case} allocate");
    }
    println!("a step on CUDA allocates nothing on the host: 1 passed, 0 failed");
}
