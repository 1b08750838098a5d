// Each size is possible, their product is not.

use plimsoll::network;

network! {
    #[train(batch = 2_000_000_000, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(24 GB)]
    struct Net(volume: f32[4096, 4096, 4096]) {
        relu, flatten, linear(4),
    }
}

fn main() {}
