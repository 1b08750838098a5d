use plimsoll::network;

network! {
    #[train(64, adam(lr = 1e-3), cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
