// Cross-entropy chooses among classes; this output is a single number a sample.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(features: f32[8]) {
        linear(1), reshape([]),
    }
}

fn main() {}
