// PyTorch's `x.view(-1, 16 * 5 * 5)`.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv1: conv2d(6, kernel = 5),
        conv2: conv2d(16, kernel = 5),
        fc: linear(10),

        fn forward(x) {
            let x = x.conv1().relu().maxpool2d(2);
            let x = x.conv2().relu().maxpool2d(2);
            x.reshape([-1, 15 * 5 * 5]).fc()
        }
    }
}

fn main() {}
