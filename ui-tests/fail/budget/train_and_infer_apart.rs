// Training and inference each have an amount, and each exceeds its own.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[infer(batch = 256)]
    #[budget(train = 8 MB, infer = 4 MB)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu, maxpool2d(2),
        conv2d(32, kernel = 3, padding = 1), relu, adaptive_avgpool2d(1),
        flatten, linear(10),
    }
}

fn main() {}
