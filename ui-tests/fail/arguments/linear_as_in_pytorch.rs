// `nn.Linear(784, 128)`.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(784, 128), relu, linear(128, 10),
    }
}

fn main() {}
