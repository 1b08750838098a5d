use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        layers: [linear(64), linear(10)],

        fn forward(x) {
            let y = layers[0](x);
            layers[1](y)
        }
    }
}

fn main() {}
