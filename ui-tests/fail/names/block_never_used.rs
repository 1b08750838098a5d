use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(64), relu, linear(10),
    }

    block Hidden(width) {
        linear(width), relu,
    }
}

fn main() {}
