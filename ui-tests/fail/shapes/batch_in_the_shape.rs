// PyTorch's tensors have the batch in front; here it is left out.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[64, 3, 32, 32]) {
        conv2d(16, kernel = 3), relu, flatten, linear(10),
    }
}

fn main() {}
