// The mistake is in the call, the place where it shows is in the block.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Hidden(0), linear(10),
    }

    block Hidden(width) {
        linear(width), relu,
    }
}

fn main() {}
