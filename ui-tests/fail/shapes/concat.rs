use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        wide: conv2d(8, kernel = 5),
        narrow: conv2d(8, kernel = 3),
        fc: linear(10),

        fn forward(x) {
            concat(x.wide(), x.narrow()).flatten().fc()
        }
    }
}

fn main() {}
