// It would fit the card, but not beside the CUDA context.

use plimsoll::network;

network! {
    #[train(batch = 256, optimizer = sgd(lr = 0.1, momentum = 0.9), loss = cross_entropy)]
    #[budget(1 GB, reserve = 600 MB)]
    struct Net(image: f32[3, 64, 64]) {
        conv2d(64, kernel = 3, padding = 1), relu, maxpool2d(2),
        conv2d(64, kernel = 3, padding = 1), relu, maxpool2d(2),
        flatten, linear(10),
    }
}

fn main() {}
