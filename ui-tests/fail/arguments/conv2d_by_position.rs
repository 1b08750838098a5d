// `nn.Conv2d(3, 64, 3)`.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(3, 64, 3), relu, flatten, linear(10),
    }
}

fn main() {}
