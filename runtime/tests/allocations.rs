//! Counts every allocation of the process: a trainer allocates its arena once, and a step nothing at all.

mod common;
mod counting;

use std::sync::atomic::Ordering::SeqCst;

use common::{Batch, network};
use counting::{ALLOCATIONS, ARENA_BYTES};
use plimsoll_runtime::philox::{Purpose, Stream};
use plimsoll_runtime::{Cpu, Predictor, Trainer};

/// A program of its own, without the test harness, whose thread would allocate meanwhile.
fn main() {
    // Threads that end would allocate; so none does.
    let mut trainers = Vec::new();
    let numbers = Stream::new(4, Purpose::Shuffle, 0, 0);
    for case in 0..48u64 {
        let words = (0..4).flat_map(|block| numbers.words(case * 4 + block));
        let layers: Vec<u64> = words.map(|word| u64::from(word) << 32 | u64::from(word.rotate_left(7))).collect();
        let optimizer = case as usize % 8;
        let recipe = common::Recipe {
            layers,
            batch: 3,
            optimizer,
            loss: case as usize % 6,
            accumulate: 1 + case % 2,
            clip: case.is_multiple_of(3),
            smooth: true,
        };
        let graph = network(&recipe);
        let plan = graph.plan().unwrap();
        for threads in [1, 3] {
            let device = Cpu::with_threads(threads).unwrap();
            let before = ARENA_BYTES.load(SeqCst);
            let mut trainer = Trainer::from_plan(&plan, device, 7).unwrap();
            assert_eq!(ARENA_BYTES.load(SeqCst) - before, plan.peak_bytes(), "one arena of the planned bytes");
            let batch = Batch::new(&graph, 3, 0);
            let (inputs, targets) = (batch.slices(), batch.targets(&graph));
            trainer.step(inputs.as_slice(), targets).unwrap();
            trainer.predict(inputs.as_slice()).unwrap();
            let before = ALLOCATIONS.load(SeqCst);
            // More of them than the 63 after which a queue between threads would take its next block.
            for _ in 0..70 {
                trainer.step(inputs.as_slice(), targets).unwrap();
                trainer.predict(inputs.as_slice()).unwrap();
            }
            let allocations = ALLOCATIONS.load(SeqCst) - before;
            assert_eq!(allocations, 0, "70 steps on {threads} threads allocate, in case {case}");
            trainers.push(trainer);
        }
        let before = ARENA_BYTES.load(SeqCst);
        let mut predictor = Predictor::from_plan(&plan, Cpu::with_threads(1).unwrap(), 7).unwrap();
        assert_eq!(ARENA_BYTES.load(SeqCst) - before, plan.inference_bytes());
        predictor.predict(Batch::new(&graph, 3, 0).slices().as_slice()).unwrap();
    }
    println!("a step allocates nothing: 1 passed, 0 failed");
}
