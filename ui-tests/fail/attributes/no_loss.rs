use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3))]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
