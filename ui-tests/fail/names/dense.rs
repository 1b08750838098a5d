// Other frameworks' words.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv(64, kernel = 3), swish, maxpool(2), view, dense(10), logsoftmax,
    }
}

fn main() {}
