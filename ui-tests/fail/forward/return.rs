use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        fc: linear(10),

        fn forward(x) {
            return x.fc();
        }
    }
}

fn main() {}
