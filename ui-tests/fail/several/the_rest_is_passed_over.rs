// After an unknown layer nothing is known of the shapes, and nothing is guessed about them.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(1 KB)]
    struct Net(image: f32[3, 32, 32]) {
        my_layer(64), conv2d(8, kernel = 99), batchnorm1d, flatten(5), linear(10),
    }
}

fn main() {}
