//! Recomputation in the zoo: what a step costs in ever less memory, and that it is never worse than the known way.

mod regions;

#[path = "../plan/tests/common/every_root.rs"]
mod every_root;

use std::fmt::Write;
use std::sync::LazyLock;

use every_root::every_root;
use plimsoll::Network;
use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::plan::{Plan, Planned};
use plimsoll::plan::strategy::Saving;
use plimsoll::plan::units::thousands;
use plimsoll::plan::validate::validate;

macro_rules! zoo {
    ($($file:literal $module:ident $network:ident;)*) => {
        $(#[path = $file] #[allow(dead_code)] mod $module;)*

        fn zoo() -> Vec<Graph> {
            vec![$(<$module::$network as Network>::graph(),)*]
        }
    };
}

zoo! {
    "../examples/zoo/vgg16.rs" vgg16 Vgg16;
    "../examples/zoo/resnet50.rs" resnet50 ResNet50;
    "../examples/zoo/densenet121.rs" densenet121 DenseNet121;
    "../examples/zoo/mobilenet_v2.rs" mobilenet_v2 MobileNetV2;
    "../examples/zoo/unet.rs" unet UNet;
}

/// Parts of the transient memory that the step takes when nothing is saved, in percent.
const SHARES: [u64; 5] = [100, 75, 50, 35, 25];

/// A network, and its plans in ever less memory.
struct Planning {
    graph: Graph,
    /// The plan with no saving at all.
    plain: Plan,
    /// Share, budget, and the plan for it.
    plans: Vec<(u64, u64, Plan)>,
}

impl Planning {
    fn new(graph: Graph) -> Planning {
        let plain = graph.clone().without(Saving::BEYOND_IN_PLACE).plan().expect("a plan");
        let placement = &training(&plain).placement;
        let plans = SHARES.map(|share| {
            let budget = placement.persistent_bytes + placement.transient_bytes() * share / 100;
            (share, budget, within(&graph, budget))
        });
        Planning { plans: plans.into(), plain, graph }
    }
}

static PLANNINGS: LazyLock<Vec<Planning>> = LazyLock::new(|| zoo().into_iter().map(Planning::new).collect());

fn within(graph: &Graph, budget: u64) -> Plan {
    graph.clone().budget(budget).recompute().plan().expect("a plan")
}

fn training(plan: &Plan) -> &Planned {
    plan.training.as_ref().expect("a network that is trained")
}

fn compute(plan: &Plan) -> f64 {
    training(plan).compute(&plan.graph)
}

#[test]
fn every_plan_is_valid() {
    for plan in PLANNINGS.iter().flat_map(|planning| &planning.plans).map(|(.., plan)| plan) {
        validate(plan).unwrap_or_else(|fault| panic!("{}: {fault}", plan.graph.name));
    }
}

#[test]
fn three_quarters_fit_everywhere() {
    for Planning { graph, plans, .. } in PLANNINGS.iter() {
        for (share, budget, plan) in plans.iter().filter(|(share, ..)| *share >= 75) {
            let length = training(plan).placement.length;
            assert!(length <= *budget, "{} at {share}%: {length} bytes in {budget}", graph.name);
        }
    }
}

/// Where nothing fits, what is reached is the least there is: it does not get worse as the budget falls.
#[test]
fn less_memory_never_costs_less() {
    for Planning { graph, plans, .. } in PLANNINGS.iter() {
        for pair in plans.windows(2) {
            let [(_, budget, more), (share, less_budget, less)] = pair else { unreachable!() };
            let fits = |plan, budget: &u64| training(plan).placement.length <= *budget;
            match (fits(more, budget), fits(less, less_budget)) {
                (true, true) => assert!(compute(less) >= compute(more), "{} at {share}%", graph.name),
                (false, fits) => assert!(!fits, "{} fits at {share}%, but not in more", graph.name),
                (true, false) => {}
            }
        }
    }
}

#[test]
fn never_worse_than_keeping_every_root() {
    for Planning { graph, plain, plans } in PLANNINGS.iter() {
        // It has the other savings too.
        let strategy = every_root(graph, &training(&plans[0].2).strategy);
        let known = Plan::with_strategy(graph.clone(), strategy).expect("a plan");
        validate(&known).unwrap_or_else(|fault| panic!("{}: {fault}", graph.name));
        let budget = training(&known).placement.length;
        assert!(budget < training(plain).placement.length, "{}: it should save memory", graph.name);
        let plan = within(graph, budget);
        let (length, cost) = (training(&plan).placement.length, compute(&plan));
        println!("{}: {budget} bytes for {:.4}, ours {length} for {cost:.4}", graph.name, compute(&known));
        assert!(length <= budget, "{}: {length} bytes, every root takes {budget}", graph.name);
        assert!(cost < compute(&known), "{}: {cost}, every root takes {}", graph.name, compute(&known));
    }
}

#[test]
fn the_table_in_the_measurements() {
    let mut table = "| network | batch | memory | peak | fits | extra compute | extra products |\n".to_string();
    table.push_str("|---|---:|---:|---:|---|---:|---:|\n");
    for Planning { graph, plain, plans } in PLANNINGS.iter() {
        for (share, budget, plan) in plans {
            let Planned { schedule, placement, .. } = training(plan);
            let whole = training(plain).placement.transient_bytes() as f64;
            let fits = match placement.length <= *budget {
                true => "yes".to_string(),
                false => {
                    let reached = 100.0 * placement.transient_bytes() as f64 / whole;
                    let step = schedule.steps[placement.peak_step].describe(graph);
                    format!("no: {reached:.1}% is the least, at {step}")
                }
            };
            let footprint = Footprint::new(plan);
            let products = footprint.recompute_flops as f64 / (footprint.flops - footprint.recompute_flops) as f64;
            let (extra, products) = (100.0 * (compute(plan) - 1.0), 100.0 * products);
            let (name, batch, peak) = (&graph.name, placement.batch, thousands(placement.length));
            writeln!(table, "| {name} | {batch} | {share}% | {peak} | {fits} | {extra:.1}% | {products:.1}% |")
                .unwrap();
        }
    }
    regions::check("docs/measurements.md", "recompute", &table);
}
