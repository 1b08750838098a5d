use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        layers: [linear(784); 4],
        fc: linear(10),

        fn forward(x) {
            for layer in layers {
                x = layer(x);
            }
            x.fc()
        }
    }
}

fn main() {}
