use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        ..Residual, linear(10),
    }

    block Residual {
        fc: linear(784),

        fn forward(x) {
            x + x.fc()
        }
    }
}

fn main() {}
