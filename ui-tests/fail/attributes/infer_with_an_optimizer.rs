use plimsoll::network;

network! {
    #[infer(batch = 64, optimizer = sgd(lr = 0.1))]
    struct Net(pixels: f32[784]) {
        linear(64), relu, linear(10),
    }
}

fn main() {}
