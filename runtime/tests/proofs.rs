//! Runs that prove plans: with dead memory poisoned, with every buffer apart, and with other numbers of threads, training
//! gives the same bits.

mod common;

use common::{network, recipes, train};
use plimsoll_runtime::Cpu;
use plimsoll_runtime::proof::{Apart, Poisoned};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { std::env::var("CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(200) }, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_runs_agree(recipe in recipes(false)) {
        let graph = network(&recipe);
        let alone = || Cpu::with_threads(1).unwrap();
        let bits = train(&graph, alone(), 4);
        prop_assert_eq!(&bits, &train(&graph, Poisoned::new(alone()), 4), "with poison");
        prop_assert_eq!(&bits, &train(&graph, Apart::new(alone()), 4), "apart");
        prop_assert_eq!(&bits, &train(&graph, Cpu::with_threads(3).unwrap(), 4), "with three threads");
    }
}
