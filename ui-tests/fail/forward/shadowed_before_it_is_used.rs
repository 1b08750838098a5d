use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        fc1: linear(64),
        fc2: linear(10),

        fn forward(x) {
            let y = x.fc1().relu();
            let y = x.fc2();
            y
        }
    }
}

fn main() {}
