// A parameter of one block is not known in another.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Outer(64), linear(10),
    }

    block Outer(width) {
        Inner, relu,
    }

    block Inner {
        linear(width),
    }
}

fn main() {}
