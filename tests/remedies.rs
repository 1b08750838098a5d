//! What a budget's failure suggests does fit: each suggestion is written into the network as it reads, and planned; one of
//! each form runs.

use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::report::failure::{inference_failure, training_failure};
use plimsoll::{Cpu, Plan, Predictor, Slice, Trainer};

/// A network as a user might change it.
#[derive(Clone, Debug)]
struct Network {
    train: Option<(u64, String)>,
    infer: Option<u64>,
    budget: String,
    body: &'static str,
}

impl Network {
    fn source(&self) -> String {
        let mut source = String::new();
        if let Some((batch, optimizer)) = &self.train {
            source += &format!("#[train(batch = {batch}, optimizer = {optimizer}, loss = cross_entropy)]\n");
        }
        if let Some(batch) = self.infer {
            source += &format!("#[infer(batch = {batch})]\n");
        }
        format!("{source}#[budget({})]\nstruct Net{}", self.budget, self.body)
    }

    fn plan(&self) -> Plan {
        let graph = plimsoll_lang::expand::graph(&self.source());
        Plan::new(graph.unwrap_or_else(|errors| panic!("{}: {errors}", self.source()))).expect("within 64 bits")
    }

    /// With a change as the message words it.
    fn with(&self, change: &str) -> Network {
        let mut changed = self.clone();
        if let Some(budget) = change.strip_prefix("#[budget(") {
            changed.budget = budget.trim_end_matches(")]").to_string();
            return changed;
        }
        let number = |text: &str| text.trim_end_matches(")]").parse::<u64>().expect("a number");
        for part in change.split(", ") {
            if part == "inference only" {
                changed.train = None;
            } else if let Some(rest) = part.strip_prefix("#[infer(batch = ") {
                let mut words = rest.split(" for #[train(..)]");
                changed.infer = Some(number(words.next().expect("a batch")));
                if let Some(rest) = words.next().and_then(|rest| rest.strip_prefix(" and ")) {
                    let (infer, train) = rest.split_once(" for ").expect("both amounts");
                    assert!(changed.budget.contains(train), "{} has no {train}", changed.budget);
                    changed.budget = changed.budget.replace(train, infer);
                }
            } else if let Some(batch) = part.strip_prefix("batch = ") {
                changed.train.as_mut().expect("trained").0 = number(batch);
            } else if let Some(optimizer) = part.strip_prefix("optimizer = ") {
                changed.train.as_mut().expect("trained").1 = optimizer.to_string();
            } else {
                panic!("what is `{part}`?");
            }
        }
        changed
    }
}

/// The messages about training and about inference.
fn failures(plan: &Plan) -> [Option<String>; 2] {
    [training_failure(plan, &Footprint::new(plan)), inference_failure(plan)]
}

/// The suggestions of a message, with what they say is needed.
fn suggestions(message: &str) -> Vec<(String, String)> {
    let list = message.split("what would fit:\n").nth(1).unwrap_or("");
    let list = list.split("\nthe smallest need").next().unwrap_or("");
    let lines = list.lines().map(|line| line.trim().split_once(": needs ").expect("a change and what it needs"));
    lines.map(|(change, needs)| (change.to_string(), needs.to_string())).collect()
}

/// Runs a plan: a step of training on two samples, where it is trained, and inference.
fn run(plan: &Plan) {
    let graph = &plan.graph;
    let samples = graph.declared_batch().min(graph.inference_batch()).min(2);
    let input = vec![0.5f32; (samples * graph.inputs[0].value_type.elements()) as usize];
    let inputs = &[Slice::from(&input)][..];
    let mut predictor = Predictor::from_plan(plan, Cpu::new(), 1).expect("memory");
    assert_eq!(predictor.allocated_bytes(), plan.inference_bytes());
    assert_eq!(predictor.predict(inputs).expect("an output").len() as u64, samples * 10);
    if plan.training.is_some() {
        let mut trainer = Trainer::from_plan(plan, Cpu::new(), 1).expect("memory");
        assert_eq!(trainer.allocated_bytes(), plan.peak_bytes());
        let loss = trainer.step(inputs, &vec![3; samples as usize]).expect("a loss");
        assert!((0.5..6.0).contains(&loss), "of ten classes, before training: {loss}");
    }
}

const WIDE: &str = "(x: f32[1024]) { linear(4096), relu, linear(2048), relu, linear(10) }";
const IMAGE: &str = "(image: f32[3, 32, 32]) {
    conv2d(16, kernel = 3, padding = 1), batchnorm2d, relu, maxpool2d(2),
    conv2d(32, kernel = 3, padding = 1), relu, flatten, linear(64), relu, linear(10),
}";

#[test]
fn each_suggestion_fits() {
    let mut kinds = std::collections::BTreeSet::new();
    let mut nothing = 0;
    for body in [WIDE, IMAGE] {
        for optimizer in ["adam", "rmsprop(momentum = 0.9, centered = true)", "sgd(momentum = 0.9)", "sgd"] {
            for batch in [4, 512] {
                for infer in [None, Some(1), Some(4096)] {
                    for budget in [
                        "1 MB",
                        "12 MB",
                        "train = 52 MB",
                        "70 MiB",
                        "100 MB, reserve = 20 MB",
                        "train = 160 MB, infer = 55 MB",
                        "infer = 51 MB",
                        "train = 8 MB, infer = 4 MB",
                    ] {
                        let train = Some((batch, optimizer.to_string()));
                        let network = Network { train, infer, budget: budget.to_string(), body };
                        let plan = network.plan();
                        for (which, message) in failures(&plan).into_iter().enumerate() {
                            let Some(message) = message else { continue };
                            let suggestions = suggestions(&message);
                            nothing += usize::from(suggestions.is_empty());
                            assert_eq!(suggestions.is_empty(), message.contains("nothing smaller fits"), "{message}");
                            for (change, needs) in suggestions {
                                let changed = network.with(&change);
                                let plan = changed.plan();
                                let trained = changed.train.is_some();
                                let left = &failures(&plan)[if trained { which } else { 1 }];
                                assert!(left.is_none(), "{change}\n{}\n{message}\n{left:?}", network.source());
                                let bytes = if which == 0 { plan.peak_bytes() } else { plan.inference_bytes() };
                                let needs = needs.split(", ").next().unwrap();
                                assert_eq!(needs, plan.graph.budget.units.format(bytes), "{change}\n{message}");
                                if kinds.insert(change.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()) {
                                    run(&plan);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    // Every form of a suggestion was met, and so was that there is none.
    assert!(nothing > 0);
    for form in [
        "batch = ",
        "#[infer(batch = )]",
        "batch = , #[infer(batch = )]",
        "optimizer = sgd",
        "optimizer = sgd(momentum = .)",
        "optimizer = lion",
        "optimizer = sgd, batch = ",
        "inference only, #[infer(batch = )] for #[train(..)]",
        "inference only, #[infer(batch = )] for #[train(..)] and infer =  MB for train =  MB",
    ] {
        assert!(kinds.contains(form), "{form} is not among {kinds:#?}");
    }
}

/// Layers that are worth computing again.
const DEEP: &str = "(image: f32[3, 32, 32]) {
    conv2d(16, kernel = 3, padding = 1), relu, conv2d(16, kernel = 3, padding = 1), relu,
    conv2d(16, kernel = 3, padding = 1), relu, conv2d(16, kernel = 3, padding = 1), relu,
    conv2d(16, kernel = 3, padding = 1), relu, conv2d(16, kernel = 3, padding = 1), relu,
    conv2d(16, kernel = 3, padding = 1), relu, flatten, linear(10),
}";

#[test]
fn recompute_is_offered_with_its_price() {
    for (budget, offered) in [
        ("24 MB", Some("#[budget(24 MB, recompute)]")),
        ("24 MB, reserve = 1 MB", Some("#[budget(24 MB, reserve = 1 MB, recompute)]")),
        ("train = 24 MB, infer = 20 MB", Some("#[budget(train = 24 MB, infer = 20 MB, recompute)]")),
        ("8 MB", None),
    ] {
        let train = Some((64, "sgd".to_string()));
        let network = Network { train, infer: None, budget: budget.to_string(), body: DEEP };
        let plan = network.plan();
        let [Some(message), _] = failures(&plan) else { panic!("{budget}: it fits") };
        let found = suggestions(&message).into_iter().find(|(change, _)| change.contains("recompute"));
        let Some(offered) = offered else {
            assert_eq!(found, None, "{message}");
            // The least that is possible, whatever the budget.
            let (_, least) = message.split_once("the smallest need found at batch 64, with `recompute`: ").expect("it");
            let again = Network { budget: "1 MB, recompute".to_string(), ..network.clone() }.plan();
            assert_eq!(least, again.graph.budget.units.format(again.peak_bytes()), "{message}");
            continue;
        };
        let (change, needs) = found.unwrap_or_else(|| panic!("{budget}: {message}"));
        assert_eq!(change, offered);
        let again = network.with(&change).plan();
        assert_eq!(failures(&again), [None, None], "{message}");
        let training = again.training.as_ref().unwrap();
        let footprint = Footprint::new(&again);
        // The compute without recomputation is 1 here; a price is rounded up.
        let compute = (training.compute(&again.graph) * 100.0).ceil() / 100.0;
        let compute = format!("{compute:.2}x the compute");
        assert_eq!(needs, format!("{}, {compute}", again.graph.budget.units.format(again.peak_bytes())), "{message}");
        run(&again);
        assert!(footprint.recompute_flops > 0 && footprint.recompute_flops < footprint.flops / 3, "{footprint:?}");
        // With it the largest batch is larger, and one more does not fit.
        let batch = footprint.max_batch.unwrap();
        assert!(batch > Footprint::new(&plan).max_batch.unwrap(), "{batch}");
        let larger = Network { train: Some((batch + 1, "sgd".to_string())), ..network.with(&change) };
        assert!(failures(&larger.plan())[0].is_some(), "{batch} is not the largest");
    }
}

#[test]
fn the_largest_batch_is_the_largest() {
    let network =
        Network { train: Some((512, "adam".to_string())), infer: None, budget: "20 MB".to_string(), body: IMAGE };
    let [Some(message), _] = failures(&network.plan()) else { panic!("it does not fit") };
    let (change, _) = &suggestions(&message)[0];
    let batch: u64 = change.strip_prefix("batch = ").expect("a smaller batch").parse().expect("a number");
    let more = network.with(&format!("batch = {}", batch + 1));
    assert!(failures(&more.plan())[0].is_some(), "{batch} is not the largest");
}
