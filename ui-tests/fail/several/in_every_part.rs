use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3, beta1 = 0.9), loss = cross_entropy)]
    #[budget(4 GB, recompute)]
    struct Net(image: float32[3, 32, 32]) {
        const CLASSES = 10 / 0;

        a: conv2d(8, kernel = 3),
        b: conv2d(8, kernel = 3),
        a: linear(CLASSES),

        fn forward(x) {
            let y = x.a().rleu();
            x.a()
        }
    }
}

fn main() {}
