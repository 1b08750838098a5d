use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        fc1: linear(64),
        fc2: linear(10),

        fn forward(x) {
            x = x.fc1().relu();
            x.fc2()
        }
    }
}

fn main() {}
