// The type and its constants exist all the same, so this is the only error.

use plimsoll::{Network, network};

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(1 MB)]
    pub struct Net(image: f32[3, 32, 32]) {
        const CLASSES = 10;

        conv2d(16, kernel = 3, padding = 1), relu, flatten, linear(CLASSES),
    }
}

const LABELS: [&str; Net::CLASSES] = [""; 10];

fn peak<N: Network>() -> u64 {
    N::PEAK_BYTES.max(N::PLAN.peak_bytes())
}

fn main() {
    let left = Net::BUDGET_BYTES - Net::HEADROOM_BYTES;
    println!("{} {left} {} {}", Net::PEAK_BYTES, peak::<Net>(), Net::MAX_BATCH);
    println!("{} {:?} {:?}", LABELS.len(), <Net as Network>::PLAN.graph, Net::LAYERS);
}
