// One amount is exceeded by training and by inference: it is said once.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(1 MB)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu, maxpool2d(2), flatten, linear(10),
    }
}

fn main() {}
