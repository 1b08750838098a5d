// The block is used three times, and the mistake is said once.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Reduce(0), Reduce(0), Reduce(0), linear(10),
    }

    block Reduce(ratio) {
        linear(64 / ratio), relu,
    }
}

fn main() {}
