//! VGG-16 for ImageNet, with a batch-norm after each convolution.
//!
//! Karen Simonyan and Andrew Zisserman, *Very Deep Convolutional Networks for Large-Scale Image Recognition*, 2014.
//! The norms came later: Sergey Ioffe and Christian Szegedy, *Batch Normalization: Accelerating Deep Network Training by
//! Reducing Internal Covariate Shift*, 2015.

use plimsoll::network;

network! {
    /// VGG-16 with batch-norm, which trains without the careful start that the plain network needs.
    #[train(batch = 32, optimizer = sgd(lr = 0.01, momentum = 0.9, weight_decay = 5e-4), loss = cross_entropy)]
    #[budget(10 GB)]
    pub struct Vgg16Bn(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            ..Conv(64), ..Conv(64), maxpool2d(2),
            ..Conv(128), ..Conv(128), maxpool2d(2),
            ..Conv(256), ..Conv(256), ..Conv(256), maxpool2d(2),
            ..Conv(512), ..Conv(512), ..Conv(512), maxpool2d(2),
            ..Conv(512), ..Conv(512), ..Conv(512), maxpool2d(2),
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
        batchnorm2d,
        relu,
    }
}

fn main() {
    println!("{}", Vgg16Bn::summary());
}
