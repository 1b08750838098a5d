// The type, its constants and its own constants are there in spite of the mistake.

use plimsoll::{Network, assert_fits, network};

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(8 MB)]
    pub struct Net(image: f32[3, 32, 32]) {
        const CLASSES = 10;
        const RATE = 0.5;
        const SIZES = [4, widht];

        flatten, linear(64), rleu, dropout(RATE), linear(CLASSES),
    }
}

assert_fits!(24 GiB: Net::PEAK_BYTES + Net::INFERENCE_BYTES);

const SECOND: usize = Net::SIZES[1];

const LABELS: [&str; Net::CLASSES] = [""; 10];

fn batch<N: Network>() -> usize {
    N::BATCH
}

fn main() {
    println!("{} {} {}", LABELS.len() + SECOND, Net::RATE, Net::summary());
    println!("{} {} {}", batch::<Net>(), Net::PEAK_BYTES, Net::HEADROOM_BYTES);
    println!("{:?} {:?} {:?}", <Net as Network>::PLAN.graph, Net::LAYERS, Net::PEAK_CLASSES);
}
