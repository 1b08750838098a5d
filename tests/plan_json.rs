//! A plan's JSON is enough to check the plan: here once more from the JSON alone, and by `scripts/check_plan.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll::plan::graph::Graph;
use plimsoll::{Network, network};
use serde_json::Value;

#[path = "../examples/zoo/cifar_mlp.rs"]
#[allow(dead_code)]
mod cifar_mlp;
#[path = "../examples/zoo/densenet121.rs"]
#[allow(dead_code)]
mod densenet121;
mod regions;
#[path = "../examples/zoo/resnet18.rs"]
#[allow(dead_code)]
mod resnet18;
#[path = "../examples/zoo/unet.rs"]
#[allow(dead_code)]
mod unet;

// Everything that makes a schedule less plain.
network! {
    #[train(batch = 2, optimizer = rmsprop(momentum = 0.9, centered = true), loss = mse, accumulate = 2, clip_grad_norm = 1.0)]
    #[infer(batch = 9)]
    struct Odd(x: f32[6, 4, 4], y: f32[1, 4, 4]) {
        #[freeze]
        still: conv2d(6, kernel = 1),
        norm: batchnorm2d,
        pool: maxpool2d(2),
        gain: parameter([6, 1, 1], init = 1.0),

        fn forward(x, y) {
            let z = x.still().norm();
            (z * gain + y * z).dropout(0.1).pool() + 2 * pool(x)
        }
    }
}

// The example in docs/plan-json.md.
network! {
    #[train(batch = 2, optimizer = sgd(lr = 0.1), loss = mse)]
    struct Tiny(x: f32[3]) { fc: linear(2), relu }
}

fn plans() -> Vec<(&'static str, Graph)> {
    vec![
        ("cifar_mlp", cifar_mlp::CifarMlp::graph()),
        ("densenet121", densenet121::DenseNet121::graph()),
        ("resnet18", resnet18::ResNet18::graph()),
        ("unet", unet::UNet::graph()),
        ("unet_inference", unet::UNet::graph().inference_only()),
        ("odd", Odd::graph()),
    ]
}

fn json(graph: &Graph) -> String {
    graph.plan().expect("a plan").to_json()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} is no number: {}", value[key]))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is no list"))
}

struct Buffer<'v> {
    name: &'v Value,
    lower: u64,
    upper: u64,
    start: u64,
    end: u64,
}

/// The most aligned bytes live at one step, after checking every pair of buffers.
fn check_schedule(schedule: &Value) -> u64 {
    let steps = list(schedule, "steps");
    let mut live = vec![0; steps.len().max(1)];
    let mut buffers: Vec<Buffer> = Vec::new();
    for value in list(schedule, "buffers") {
        let (start, size, alignment) = (number(value, "offset"), number(value, "size"), number(value, "alignment"));
        let (lower, upper) = (number(value, "lower"), number(value, "upper"));
        let a = Buffer { name: &value["name"], lower, upper, start, end: start + size };
        assert!(a.lower < a.upper && a.upper <= live.len() as u64, "{} has no lifespan", a.name);
        assert!(a.start.is_multiple_of(alignment), "{} is not aligned", a.name);
        assert!(a.end <= number(schedule, "length"), "{} is outside", a.name);
        for time in lower..upper {
            live[time as usize] += size.next_multiple_of(alignment);
        }
        for b in &buffers {
            let apart = b.upper <= a.lower || a.upper <= b.lower || b.end <= a.start || a.end <= b.start;
            assert!(apart, "{} and {} share bytes", a.name, b.name);
        }
        buffers.push(a);
    }
    for (time, step) in (0u64..).zip(steps) {
        for operand in list(step, "operands") {
            let buffer = &buffers[number(operand, "buffer") as usize];
            assert!(buffer.lower <= time && time < buffer.upper, "{} touches {}", step["name"], buffer.name);
        }
    }
    let most = live.into_iter().max().unwrap_or(0);
    assert_eq!(number(schedule, "lower_bound"), most);
    most
}

#[test]
fn the_json_alone_shows_that_a_plan_is_sound() {
    for (name, graph) in plans() {
        let plan: Value = serde_json::from_str(&json(&graph)).expect("JSON");
        let shift = number(&plan, "evaluation_shift");
        let mut bound = check_schedule(&plan["inference"]) + shift;
        let mut peak = number(&plan["inference"], "length") + shift;
        if !plan["training"].is_null() {
            bound = bound.max(check_schedule(&plan["training"]));
            peak = peak.max(number(&plan["training"], "length"));
        }
        assert_eq!(number(&plan, "lower_bound_bytes"), bound, "{name}");
        assert_eq!(number(&plan, "peak_bytes"), peak, "{name}");
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    fs::write(&path, text).expect("a file in the target folder");
    path
}

/// What the checker says of a plan: whether it is sound, and its words. `None` where there is no Python.
fn check_plan(name: &str, text: &str) -> Option<(bool, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check_plan.py");
    let output = match Command::new("python3").arg(script).arg(file(name, text)).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: python3 does not run ({error}), so scripts/check_plan.py was not tried on {name}");
            return None;
        }
    };
    let words = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
}

#[test]
fn the_checker_in_python_accepts_the_plans() {
    for (name, graph) in plans() {
        if let Some((sound, words)) = check_plan(name, &json(&graph)) {
            assert!(sound, "{name}: {words}");
            println!("{words}");
        }
    }
}

/// A checker that accepts everything would be of no use.
#[test]
fn the_checker_in_python_finds_faults() {
    type Spoil = fn(&mut Value);
    let faults: [(&str, &str, Spoil); 7] = [
        ("overlap", "share bytes", |plan| {
            let offset = plan["training"]["persistent_bytes"].clone();
            for buffer in plan["training"]["buffers"].as_array_mut().unwrap() {
                if buffer["persistent"] == false {
                    buffer["offset"] = offset.clone();
                }
            }
        }),
        ("alignment", "off its alignment", |plan| plan["training"]["buffers"][0]["offset"] = 4.into()),
        ("outside", "outside the arena", |plan| plan["inference"]["length"] = 1024.into()),
        ("lifespan", "outside its lifespan", |plan| {
            let buffers = plan["training"]["buffers"].as_array_mut().unwrap();
            let longest = buffers.iter_mut().filter(|b| b["persistent"] == false).max_by_key(|b| number(b, "upper"));
            let buffer = longest.unwrap();
            buffer["upper"] = (number(buffer, "lower") + 1).into();
        }),
        ("bound", "the lower bound is", |plan| plan["training"]["lower_bound"] = 1.into()),
        ("peak", "peak_bytes is", |plan| plan["peak_bytes"] = 1.into()),
        ("unwritten", "which nothing has written", |plan| {
            for operand in plan["inference"]["steps"][0]["operands"].as_array_mut().unwrap() {
                operand["access"] = "read".into();
            }
        }),
    ];
    let sound = json(&unet::UNet::graph());
    for (name, expected, spoil) in faults {
        let mut plan: Value = serde_json::from_str(&sound).expect("JSON");
        spoil(&mut plan);
        if let Some((accepted, words)) = check_plan(&format!("spoilt_{name}"), &plan.to_string()) {
            assert!(!accepted && words.contains(expected), "{name}: {words}");
        }
    }
}

#[test]
fn the_example_in_the_document() {
    let plan: Value = serde_json::from_str(&json(&Tiny::graph())).expect("JSON");
    let mut shown = plan.clone();
    // One buffer and one step stand for the others.
    for key in ["buffers", "steps"] {
        let training = &mut shown["training"];
        let count = list(training, key).len();
        let kept =
            if key == "buffers" { list(training, key)[count - 4].clone() } else { list(training, key)[3].clone() };
        training[key] = Value::Array(vec![kept]);
    }
    shown["inference"] = Value::Object(serde_json::Map::new());
    let text = serde_json::to_string_pretty(&shown).expect("JSON");
    regions::check("docs/plan-json.md", "example", &format!("```json\n{text}\n```"));
}
