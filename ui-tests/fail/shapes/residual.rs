// The second convolution has no padding.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[16, 32, 32]) {
        conv1: conv2d(16, kernel = 3, padding = 1),
        conv2: conv2d(16, kernel = 3),
        fc: linear(10),

        fn forward(x) {
            let y = x.conv1().relu().conv2();
            (x + y).relu().flatten().fc()
        }
    }
}

fn main() {}
