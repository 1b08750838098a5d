// Constants outside of the macro can't be seen from within.

use plimsoll::network;

const CLASSES: usize = 10;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(64), relu, linear(CLASSES),
    }
}

fn main() {
    println!("{CLASSES}");
}
