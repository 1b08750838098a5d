//! The peak of one training step beside the least that PyTorch takes for the same network, batch and optimizer on a CPU, in
//! eager mode. PyTorch's figures were measured by its own allocator's count; `docs/measurements.md` says how, and has the
//! other modes.

mod networks;
mod regions;

use std::fmt::Write;

use networks::{LeNet, Mlp, ResNet18, resnet50, vgg16};
use plimsoll::Network;
use plimsoll::plan::footprint::Footprint;
use plimsoll::plan::graph::Graph;
use plimsoll::plan::layer_table::rows;
use plimsoll::plan::report::markdown;
use plimsoll::plan::report::savings::Used;
use plimsoll::plan::strategy::Saving;
use plimsoll::plan::units::thousands;

fn peak(graph: &Graph, without: &[Saving]) -> u64 {
    graph.clone().without(without).plan().expect("a plan").peak_bytes()
}

/// Network, optimizer, its graph with the batch, PyTorch's peak in bytes as measured for the documents, and the best figure
/// of all peers (PyTorch and JAX, any mode) in MiB, as it was set as the mark to stay below.
fn peers() -> [(&'static str, &'static str, Graph, u64, f64); 6] {
    [
        ("MLP", "Adam", Mlp::graph().batch(4), 6_360_240, 6.07),
        ("MLP", "Adam", Mlp::graph().batch(64), 7_128_720, 6.80),
        ("LeNet", "SGD, momentum", LeNet::graph().batch(64), 4_543_064, 4.90),
        ("ResNet-18, 32 x 32", "SGD, momentum", ResNet18::graph().batch(64), 141_561_832, 135.0),
        ("ResNet-50", "SGD, momentum", resnet50::ResNet50::graph().batch(4), 565_735_184, 539.5),
        ("VGG-16", "SGD, momentum", vgg16::Vgg16::graph().batch(4), 1_811_413_352, 1727.0),
    ]
}

/// Network, batch, optimizer, our peak, and the two figures of the peers.
fn table() -> [(&'static str, u64, &'static str, u64, u64, f64); 6] {
    peers().map(|(name, optimizer, graph, peer, best)| {
        (name, graph.declared_batch(), optimizer, peak(&graph, &[]), peer, best)
    })
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[test]
fn no_peer_needs_less() {
    for (name, batch, _, ours, peer, _) in table() {
        println!("{name} {batch}: {ours} bytes, PyTorch {peer}, ratio {:.4}", ours as f64 / peer as f64);
    }
    for (name, batch, _, ours, _, best) in table() {
        assert!(
            mebibytes(ours) <= best,
            "{name} {batch}: {} MiB are more than the best peer's {best}",
            mebibytes(ours)
        );
    }
}

/// The mark that was set for the planner's savings, which the MLP at batch 64, of which 69 % are parameters and Adam's state
/// that every framework has, is not among.
#[test]
fn four_fifths_of_the_best_peer_suffice() {
    for (name, batch, _, ours, _, best) in table() {
        let share = mebibytes(ours) / best;
        println!("{name} {batch}: {share:.3} of the best peer");
        assert!(share <= 0.80 || (name, batch) == ("MLP", 64), "{name} {batch}: {share:.4} of the best peer");
    }
}

/// None of this is bought with products that are computed twice.
#[test]
fn no_product_is_computed_twice_for_it() {
    for graph in [Mlp::graph(), LeNet::graph(), ResNet18::graph(), resnet50::ResNet50::graph(), vgg16::Vgg16::graph()] {
        assert_eq!(Footprint::new(&graph.plan().unwrap()).recompute_flops, 0);
    }
}

/// What the reports say of the savings, by hand.
#[test]
fn savings_are_named() {
    // 21 rows of 3,072 floats are the most within 256 KiB; the weight has 128.
    let mlp = Mlp::graph().plan().unwrap().savings();
    // The relu, its gradient, and the gradient of the logits are written over what they come from.
    let in_place = Used { saving: Saving::InPlace, count: 3, bytes: 4 * (128 + 128 + 10) * 4 };
    assert_eq!(mlp, [Used { saving: Saving::RowTiles, count: 1, bytes: (128 - 21) * 3072 * 4 }, in_place]);
    // Every gradient of VGG-16: thirteen convolutions and three linear layers, each with a weight and a bias.
    let vgg = vgg16::Vgg16::graph().plan().unwrap();
    let gradients = Used { saving: Saving::MomentumGradients, count: 32, bytes: 138_357_544 * 4 };
    assert_eq!(vgg.savings()[0], gradients);
    // With neither of the two, the largest gradient, that of the first linear layer, sets the peak.
    let without = vgg16::Vgg16::graph().without(&[Saving::MomentumGradients, Saving::RowTiles]).plan().unwrap();
    let more = without.peak_bytes() - vgg.peak_bytes();
    assert!((200_000_000..=25_088 * 4096 * 4).contains(&more), "{more}");
    assert!(vgg16::Vgg16::summary().contains("momentum_gradients     32 not kept, 553 MB in all"));
    // Each of the three blocks that halve the image runs its `downsample` first, which takes no memory away by itself.
    let resnet = ResNet18::graph().batch(64).plan().unwrap();
    let page = markdown::page(&resnet, &Footprint::new(&resnet), &rows(&resnet));
    let row = page.lines().find(|line| line.starts_with("|`step_order`|")).unwrap();
    assert!(row.ends_with("|3 in another order||"), "{row}");
}

#[test]
fn the_table_in_the_documents() {
    let mut table =
        "| network | batch | optimizer | Plimsoll | PyTorch | ratio |\n|---|---:|---|---:|---:|---:|\n".to_string();
    for (name, batch, optimizer, ours, peer, _) in self::table() {
        let ratio = ours as f64 / peer as f64;
        let (ours, peer) = (mebibytes(ours), mebibytes(peer));
        writeln!(table, "| {name} | {batch} | {optimizer} | {ours:.2} | {peer:.2} | {ratio:.3} |").unwrap();
    }
    regions::check("README.md", "peers", &table);
    regions::check("docs/measurements.md", "peers", &table);
}

/// What each group of savings brings, the others switched off.
#[test]
fn the_table_of_differences_in_the_measurements() {
    let mut table =
        "| network, batch | PyTorch | no saving | gradients that do not exist | every saving |\n|---|---:|---:|---:|---:|\n"
            .to_string();
    let of_values: Vec<Saving> = Saving::BEYOND_IN_PLACE
        .iter()
        .copied()
        .filter(|saving| ![Saving::MomentumGradients, Saving::RowTiles].contains(saving))
        .collect();
    for (name, _, graph, peer, _) in peers() {
        let [none, gradients, every] = [Saving::BEYOND_IN_PLACE, &of_values, &[]].map(|without| peak(&graph, without));
        let figures = [peer, none, gradients, every].map(thousands).join(" | ");
        writeln!(table, "| {name}, {} | {figures} |", graph.declared_batch()).unwrap();
    }
    regions::check("docs/measurements.md", "differences", &table);
}
