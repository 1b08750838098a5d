//! VGG-19 for ImageNet: configuration E of its paper.
//!
//! Karen Simonyan and Andrew Zisserman, *Very Deep Convolutional Networks for Large-Scale Image Recognition*, 2014.

use plimsoll::network;

network! {
    /// VGG-19: sixteen small convolutions, five poolings, three linear layers.
    #[train(batch = 32, optimizer = sgd(lr = 0.01, momentum = 0.9, weight_decay = 5e-4), loss = cross_entropy)]
    #[budget(7 GB)]
    pub struct Vgg19(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            ..Conv(64), ..Conv(64), maxpool2d(2),
            ..Conv(128), ..Conv(128), maxpool2d(2),
            ..Conv(256), ..Conv(256), ..Conv(256), ..Conv(256), maxpool2d(2),
            ..Conv(512), ..Conv(512), ..Conv(512), ..Conv(512), maxpool2d(2),
            ..Conv(512), ..Conv(512), ..Conv(512), ..Conv(512), maxpool2d(2),
        ],
        avgpool: adaptive_avgpool2d(7),
        flatten,
        classifier: [
            linear(4096), relu, dropout,
            linear(4096), relu, dropout,
            linear(CLASSES),
        ],
    }

    block Conv(channels) {
        conv2d(channels, kernel = 3, padding = 1),
        relu,
    }
}

fn main() {
    println!("{}", Vgg19::summary());
}
