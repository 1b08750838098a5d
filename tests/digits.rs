//! The example `digits` learns, and saves what it has learnt: the network of the example, for a few epochs.

use digits::Digits;
use plimsoll::data::{self, Loader};
use plimsoll::{Cpu, EarlyStopping, Predictor, Trainer, Verdict};

#[path = "../examples/digits.rs"]
#[allow(dead_code)]
mod digits;

#[test]
fn learns_saves_and_predicts() {
    let split = data::digits().unwrap();
    let mut train = Loader::new(split.train, Digits::BATCH).unwrap().shuffle(42);
    let mut test = Loader::new(split.test, Digits::BATCH).unwrap();
    let mut trainer = Trainer::<Digits, _>::new(Cpu::new(), 42).unwrap();
    assert_eq!(trainer.allocated_bytes(), Digits::PEAK_BYTES);
    let folder = tempfile::tempdir().unwrap();
    let best = folder.path().join("best.safetensors");

    let mut stopping = EarlyStopping::new(3);
    for _ in 0..6 {
        for batch in train.epoch() {
            let batch = batch.unwrap();
            trainer.step(batch.inputs(), batch.targets()).unwrap();
        }
        match stopping.observe(trainer.evaluate_loader(&mut test).unwrap().loss()) {
            Verdict::Best => trainer.save(&best).unwrap(),
            Verdict::Wait => {}
            Verdict::Stop => break,
        }
    }
    trainer.load(&best).unwrap();
    let metrics = trainer.evaluate_loader(&mut test).unwrap();
    assert_eq!(metrics.loss(), stopping.best().unwrap());
    assert_eq!(metrics.samples(), 899);
    assert!(metrics.accuracy() > 0.94, "{}", metrics.accuracy());

    let mut predictor = Predictor::<Digits, _>::new(Cpu::new(), 0).unwrap();
    assert_eq!(predictor.allocated_bytes(), Digits::INFERENCE_BYTES);
    predictor.load(&best).unwrap();
    let batch = test.epoch().next().unwrap().unwrap();
    assert_eq!(predictor.predict(batch.inputs()).unwrap(), trainer.predict(batch.inputs()).unwrap());
}
