// Python's `2 ** 6`, and what is exclusive or in Rust.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(2 ** 6), relu, linear(2 ^ 4), relu, linear(1 << 3),
    }
}

fn main() {}
