// Each of the mistakes in the block is said once, not sixteen times.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        [[Basic(64); 4]; 4], flatten, linear(10),
    }

    block Basic(channels) {
        conv1: conv2d(channels, kernal = 3, padding = 1),
        bn1: batchnorm2d,
        conv2: conv2d(chanels, kernel = 3, padding = 1),
        drop: dropout(1.5),

        fn forward(x) {
            let y = x.conv1().bn1().rleu().conv2().drop();
            relu(x + y)
        }
    }
}

fn main() {}
