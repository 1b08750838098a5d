// In PyTorch the channels are dimension 1; here the batch is not counted.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        left: conv2d(8, kernel = 3),
        right: conv2d(16, kernel = 3),
        fc: linear(10),

        fn forward(x) {
            concat(x.left(), x.right(), axis = 1).flatten().fc()
        }
    }
}

fn main() {}
