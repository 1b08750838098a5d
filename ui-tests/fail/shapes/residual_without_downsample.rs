// The skip of a block that halves its input needs a convolution of its own.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        stem: conv2d(16, kernel = 3, padding = 1),
        layer1: [Basic(16), Basic(16)],
        layer2: [Basic(32, stride = 2), Basic(32)],
        layer3: [Basic(64, stride = 2), Basic(64)],
        adaptive_avgpool2d(1), flatten,
        fc: linear(10),
    }

    block Basic(channels, stride = 1) {
        conv1: conv2d(channels, kernel = 3, stride = stride, padding = 1),
        conv2: conv2d(channels, kernel = 3, padding = 1),

        fn forward(x) {
            let y = x.conv1().relu().conv2();
            relu(y + x)
        }
    }
}

fn main() {}
