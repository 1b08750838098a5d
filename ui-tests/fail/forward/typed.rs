use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        fc: linear(10),

        fn forward(x: f32[784]) -> f32[10] {
            let mut y: f32[784] = x.relu();
            y.fc()
        }
    }
}

fn main() {}
