// A grey image has one channel, which is an axis too.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[28, 28]) {
        conv2d(16, kernel = 3), relu, flatten, linear(10),
    }
}

fn main() {}
