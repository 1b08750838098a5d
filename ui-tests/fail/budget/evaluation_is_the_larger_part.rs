// Training itself fits; evaluating in large batches, beside the optimizer's state, does not.

use plimsoll::network;

network! {
    #[train(batch = 8, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[infer(batch = 2048)]
    #[budget(train = 40 MB)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu, maxpool2d(2), flatten, linear(10),
    }
}

fn main() {}
