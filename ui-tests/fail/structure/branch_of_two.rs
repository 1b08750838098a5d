use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const NORM = true;

        linear(64), if NORM { batchnorm1d, dropout }, relu, linear(10),
    }
}

fn main() {}
