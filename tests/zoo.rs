//! The zoo against published numbers: parameter counts, every name and shape of torchvision's `state_dict`, the values
//! that the layers put out; and the planner on it: the peak is the lower bound.

mod regions;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use plimsoll::Network;
use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::graph::{Graph, ParameterRole};
use plimsoll::plan::layer_table::rows;
use plimsoll::plan::units::thousands;
use plimsoll::plan::validate::validate;

macro_rules! zoo {
    ($($file:literal $module:ident $network:ident $parameters:literal;)*) => {
        $(#[path = $file] #[allow(dead_code)] mod $module;)*

        /// File, network and its number of trainable parameters: the published one, or for the three that are our own form
        /// the one counted by hand.
        fn zoo() -> Vec<(&'static str, Graph, u64)> {
            vec![$((stringify!($module), <$module::$network as Network>::graph(), $parameters),)*]
        }

        #[test]
        fn constants_hold_the_published_parameters() {
            $(assert_eq!($module::$network::PARAMETERS, $parameters, stringify!($module));)*
        }
    };
}

zoo! {
    "../examples/zoo/alexnet.rs" alexnet AlexNet 61_100_840;
    "../examples/zoo/vgg16.rs" vgg16 Vgg16 138_357_544;
    "../examples/zoo/vgg16_bn.rs" vgg16_bn Vgg16Bn 138_365_992;
    "../examples/zoo/vgg19.rs" vgg19 Vgg19 143_667_240;
    "../examples/zoo/resnet18.rs" resnet18 ResNet18 11_689_512;
    "../examples/zoo/resnet34.rs" resnet34 ResNet34 21_797_672;
    "../examples/zoo/resnet50.rs" resnet50 ResNet50 25_557_032;
    "../examples/zoo/resnet101.rs" resnet101 ResNet101 44_549_160;
    "../examples/zoo/resnet152.rs" resnet152 ResNet152 60_192_808;
    "../examples/zoo/mobilenet_v2.rs" mobilenet_v2 MobileNetV2 3_504_872;
    "../examples/zoo/densenet121.rs" densenet121 DenseNet121 7_978_856;
    "../examples/zoo/squeezenet1_0.rs" squeezenet1_0 SqueezeNet 1_248_424;
    "../examples/zoo/efficientnet_b0.rs" efficientnet_b0 EfficientNetB0 5_288_548;
    "../examples/zoo/convnext_tiny.rs" convnext_tiny ConvNextTiny 28_589_128;
    "../examples/zoo/cifar_mlp.rs" cifar_mlp CifarMlp 394_634;
    "../examples/zoo/lenet.rs" lenet LeNet 61_706;
    "../examples/zoo/unet.rs" unet UNet 1_925_601;
}

fn reference(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/references/zoo").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Networks that are torchvision's, for which there are references.
fn torchvision() -> impl Iterator<Item = (&'static str, Graph)> {
    let own = ["cifar_mlp", "lenet", "unet"];
    zoo().into_iter().filter(move |(name, ..)| !own.contains(name)).map(|(name, graph, _)| (name, graph))
}

#[test]
fn names_shapes_and_order_are_torchvisions() {
    for (name, graph) in torchvision() {
        let text = reference(&format!("{name}.csv"));
        let expected: Vec<String> = text.lines().skip(2).map(str::to_string).collect();
        let found = graph.parameters.iter().map(|p| {
            let extents: Vec<String> = p.shape.0.iter().map(u64::to_string).collect();
            let kind = if p.role == ParameterRole::Buffer { "buffer" } else { "parameter" };
            format!("{},{},{kind}", p.path, extents.join("x"))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
    }
}

#[test]
fn activations_are_what_torchvisions_layers_put_out() {
    let text = reference("activations.csv");
    let mut table: BTreeMap<&str, u64> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("network")) {
        let mut cells = line.split(',');
        let name = cells.next().unwrap();
        table.insert(name, cells.map(|cell| cell.parse::<u64>().unwrap()).sum());
    }
    for (name, graph) in torchvision() {
        let plan = graph.batch(1).plan().unwrap();
        // torchvision pools AlexNet's and VGG's 6 x 6 and 7 x 7 images to 6 x 6 and 7 x 7, which makes a copy there and
        // nothing here.
        let copied = match name {
            "alexnet" => 256 * 6 * 6,
            "vgg16" | "vgg16_bn" | "vgg19" => 512 * 7 * 7,
            _ => 0,
        };
        assert_eq!(Footprint::new(&plan).activation_bytes, (table[name] - copied) * 4, "{name}");
    }
}

#[test]
fn tables_add_up() {
    for (name, graph, parameters) in zoo() {
        let plan = graph.plan().unwrap();
        let footprint = Footprint::new(&plan);
        let table = rows(&plan);
        assert_eq!(table.iter().map(|row| row.parameters).sum::<u64>(), parameters, "{name}");
        assert_eq!(footprint.parameter_bytes, 4 * parameters, "{name}");
        assert!(plan.peak_bytes() <= footprint.textbook_bytes, "{name}: the plan needs more than the hand formula");
    }
}

#[test]
fn resnet50_has_53_120_running_values() {
    // torchvision counts 53 integer counters beside them; here the trainer counts its steps itself.
    assert_eq!(resnet50::ResNet50::BUFFER_BYTES, 53_120 * 4);
}

#[test]
fn the_table_in_the_measurements() {
    let mut table = "| network | batch | peak | lower bound | peak / bound | hand formula | inference |\n".to_string();
    table.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
    for (_, graph, _) in zoo() {
        let f = Footprint::new(&graph.plan().unwrap());
        let ratio = f.peak_bytes as f64 / f.lower_bound_bytes as f64;
        let [peak, bound, hand, inference] =
            [f.peak_bytes, f.lower_bound_bytes, f.textbook_bytes, f.inference_bytes].map(thousands);
        let name = &graph.name;
        writeln!(table, "| {name} | {} | {peak} | {bound} | {ratio:.7} | {hand} | {inference} |", f.batch).unwrap();
    }
    regions::check("docs/measurements.md", "zoo", &table);
}

#[test]
fn the_peak_is_the_lower_bound() {
    let mut worse = Vec::new();
    for (name, graph, _) in zoo() {
        for batch in [1, 4, 32, 256] {
            let plan = graph.clone().batch(batch).plan().unwrap();
            validate(&plan).unwrap();
            let training = &plan.training.as_ref().unwrap().placement;
            for (what, placement) in [("training", training), ("inference", &plan.inference.placement)] {
                if placement.length > placement.lower_bound {
                    let above = placement.length - placement.lower_bound;
                    worse.push(format!("{name} {batch} {what}: {above} bytes above"));
                }
            }
        }
    }
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
