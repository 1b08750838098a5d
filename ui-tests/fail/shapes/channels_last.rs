// TensorFlow's order.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[32, 32, 3]) {
        conv2d(16, kernel = 5), relu, flatten, linear(10),
    }
}

fn main() {}
