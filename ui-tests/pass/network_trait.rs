// Code over any network; the plan as data; the table of layers; "what if".

use plimsoll::plan::optimizers::Optimizer;
use plimsoll::{LayerRow, Network, network};

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[infer(batch = 16)]
    #[budget(1 MB)]
    pub struct Net(image: f32[1, 28, 28]) {
        flatten, fc1: linear(32), relu, fc2: linear(10),
    }
}

/// The layer with the most parameters.
fn largest<N: Network>() -> &'static LayerRow {
    N::LAYERS.iter().max_by_key(|row| row.parameters).unwrap()
}

fn report<N: Network>() -> String {
    format!("{} at {}: {} of {:?} bytes", N::NAME, N::BATCH, N::PEAK_BYTES, N::BUDGET_BYTES)
}

fn main() {
    assert_eq!(&*largest::<Net>().path, "fc1");
    assert_eq!(largest::<Net>().parameters, 784 * 32 + 32);
    assert!(report::<Net>().starts_with("Net at 64: "));

    let plan = <Net as Network>::PLAN;
    assert_eq!(plan.peak_bytes(), Net::PEAK_BYTES);
    assert_eq!(plan.inference_bytes(), Net::INFERENCE_BYTES);
    assert_eq!(plan.lower_bound_bytes(), Net::LOWER_BOUND_BYTES);
    assert!(Net::summary().contains("fc2"));
    assert_eq!(Net::PEAK_CLASSES.iter().map(|class| class.1).sum::<u64>(), Net::PEAK_BYTES);

    let larger = Net::graph().batch(128).plan().unwrap().peak_bytes();
    assert!(larger > Net::PEAK_BYTES);
    let sgd = Net::graph().optimizer(Optimizer::by_name("sgd").unwrap()).plan().unwrap().peak_bytes();
    assert!(sgd < Net::PEAK_BYTES);
    let server = Net::graph().inference_only().infer_batch(1).plan().unwrap();
    assert!(server.training.is_none() && server.peak_bytes() < Net::INFERENCE_BYTES);
}
