// VGG's five poolings leave nothing of a small digit.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[1, 28, 28]) {
        Stage(32), Stage(64), Stage(128), Stage(256), Stage(512), flatten, linear(10),
    }

    block Stage(channels) {
        conv2d(channels, kernel = 3, padding = 1), relu, maxpool2d(2),
    }
}

fn main() {}
