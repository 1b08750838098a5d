use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const DEEP = 1;

        fc1: linear(784),
        fc2: linear(10),

        fn forward(x) {
            let y = if DEEP == 1 { x.fc1().relu() } else { x };
            y.fc2()
        }
    }
}

fn main() {}
