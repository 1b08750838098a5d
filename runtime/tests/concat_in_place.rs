//! Concats that are never made: training gives the bits of the plan that makes them.

mod common;

use common::{joined, recipes, train_plan};
use plimsoll_plan::graph::{Graph, ValueId};
use plimsoll_plan::lower::Facts;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::strategy::{Strategy, cheap};
use plimsoll_runtime::Cpu;
use plimsoll_runtime::proof::{Apart, Poisoned};
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

fn by(graph: &Graph, strategy: Strategy) -> Plan {
    Plan::with_strategy(graph.clone(), strategy).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { std::env::var("CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(150) }, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bit_changes(recipe in recipes(false), dropped in any::<u64>(), forgotten in any::<u64>()) {
        let graph = joined(&recipe);
        let whole = Facts::new(&graph, true);
        let in_place = whole.clone().with_concats_in_place(&graph);
        // The one that all such networks end with.
        prop_assert!(in_place.parts.iter().any(|parts| parts.len() >= 3));
        let plain = Strategy::plain(&in_place);
        let saved = cheap::saved(&graph, &in_place);
        let chosen = |bits: u64| -> Vec<ValueId> {
            let values = (graph.inputs.len() as u32..graph.types.len() as u32).map(ValueId);
            values.filter(|value| saved[value.index()] && bits >> (value.0 % 64) & 1 == 1).collect()
        };
        let order = cheap::order_forgetting(&graph, &in_place, &chosen(dropped), &chosen(dropped & forgotten));
        let again = Strategy { order, ..plain.clone() };
        let thorough = Strategy::thorough(&graph, &in_place);
        let alone = || Cpu::with_threads(1).unwrap();
        let bits = train_plan(&by(&graph, Strategy::plain(&whole)), alone(), 4);
        prop_assert!(bits == train_plan(&by(&graph, plain.clone()), Poisoned::new(alone()), 4), "with poison");
        prop_assert!(bits == train_plan(&by(&graph, plain), Apart::new(Cpu::with_threads(3).unwrap()), 4), "apart");
        prop_assert!(bits == train_plan(&by(&graph, again), Poisoned::new(alone()), 4), "computed again");
        if !thorough.momentum_gradients {
            prop_assert!(bits == train_plan(&by(&graph, thorough), Poisoned::new(alone()), 4), "all savings");
        }
    }
}
