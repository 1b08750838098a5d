// Copied from a Python file.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv1: nn.Conv2d(64, kernel = 3),
        flatten,
        fc: nn::Linear(10),
    }
}

fn main() {}
