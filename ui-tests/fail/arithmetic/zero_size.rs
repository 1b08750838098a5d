// Widths that are halved again and again reach zero.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const WIDTH = 8;

        linear(WIDTH), linear(WIDTH / 4), linear(WIDTH / 16), linear(10),
    }
}

fn main() {}
