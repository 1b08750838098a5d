//! The card that tests of CUDA run on: the emulator's, or with `PLIMSOLL_REAL_GPU=1` the first real one.
#![allow(dead_code)] // Each test takes what it needs.

use std::cell::Cell;

use plimsoll_emulator::{Session, load_cublas, session};
use plimsoll_runtime::Cuda;

/// The emulated card while a test has it; `None` for a real one. Faults that kernels commit are found when it is dropped.
pub struct Card {
    emulator: Option<Session>,
    expects_reports: Cell<bool>,
}

impl Card {
    /// The card, for one test at a time, with the emulator's cuBLAS where there is an emulator.
    pub fn new() -> Card {
        let card = Card::without_cublas();
        if !is_real() {
            load_cublas().unwrap();
        }
        card
    }

    /// The card, without taking care that there is a cuBLAS.
    pub fn without_cublas() -> Card {
        let emulator = (!is_real()).then(|| session().unwrap());
        Card { emulator, expects_reports: Cell::new(false) }
    }

    /// The emulator's controls, where there is one.
    pub fn emulator(&self) -> Option<&Session> {
        self.emulator.as_ref()
    }

    /// The emulator's controls, for a test that can't do without. On a real card it says which test is left out and why, in
    /// a line that `tests/gpu.sh` counts.
    pub fn emulator_or_skip(&self, why: &str) -> Option<&Session> {
        if self.emulator.is_none() {
            println!("\nskipped: {}: {why}", std::thread::current().name().unwrap_or("a test"));
        }
        self.emulator.as_ref()
    }

    /// Runs something with the last thread first, the last block first, and races between blocks a fault; on a real card, as
    /// it comes.
    pub fn backwards<T>(&self, run: impl FnOnce() -> T) -> T {
        let set = |on| {
            if let Some(emulator) = &self.emulator {
                emulator.set_reversed(on);
                emulator.set_races(on);
            }
        };
        set(true);
        let result = run();
        set(false);
        result
    }

    /// Fails where the emulator did not start a kernel in this test.
    pub fn assert_started(&self, kernels: &[&str]) {
        let started = self.emulator.as_ref().map(Session::kernels);
        for kernel in kernels {
            assert!(started.as_ref().is_none_or(|started| started.iter().any(|name| name == kernel)), "no `{kernel}`");
        }
    }

    /// The test makes things fail, which the emulator then reports.
    pub fn expect_reports(&self) {
        self.expects_reports.set(true);
    }

    /// The card as a device.
    pub fn cuda(&self) -> Cuda {
        Cuda::new(0).unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let reports = self.emulator.as_ref().map_or(Vec::new(), Session::reports);
        if !self.expects_reports.get() && !std::thread::panicking() {
            assert!(reports.is_empty(), "the emulator reports:\n{}", reports.join("\n"));
        }
    }
}

/// Whether tests run on a real card.
pub fn is_real() -> bool {
    std::env::var("PLIMSOLL_REAL_GPU").is_ok_and(|value| value == "1")
}
