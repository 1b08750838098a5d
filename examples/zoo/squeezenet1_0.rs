//! SqueezeNet 1.0 for ImageNet.
//!
//! Forrest N. Iandola, Song Han, Matthew W. Moskewicz, Khalid Ashraf, William J. Dally and Kurt Keutzer, *SqueezeNet:
//! AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size*, 2016.

use plimsoll::network;

network! {
    /// SqueezeNet: squeeze the channels, expand them again, and end without a linear layer.
    #[train(batch = 32, optimizer = sgd(lr = 0.04, momentum = 0.9, weight_decay = 2e-4), loss = cross_entropy)]
    #[budget(2 GB)]
    pub struct SqueezeNet(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            conv2d(96, kernel = 7, stride = 2), relu,
            maxpool2d(3, stride = 2, ceil_mode = true),
            Fire(16, 64), Fire(16, 64), Fire(32, 128),
            maxpool2d(3, stride = 2, ceil_mode = true),
            Fire(32, 128), Fire(48, 192), Fire(48, 192), Fire(64, 256),
            maxpool2d(3, stride = 2, ceil_mode = true),
            Fire(64, 256),
        ],
        classifier: [
            dropout,
            conv2d(CLASSES, kernel = 1), relu,
            adaptive_avgpool2d(1),
        ],
        flatten,
    }

    block Fire(narrow, wide) {
        squeeze: conv2d(narrow, kernel = 1),
        expand1x1: conv2d(wide, kernel = 1),
        expand3x3: conv2d(wide, kernel = 3, padding = 1),

        fn forward(x) {
            let y = x.squeeze().relu();
            concat(y.expand1x1().relu(), y.expand3x3().relu(), axis = 0)
        }
    }
}

fn main() {
    println!("{}", SqueezeNet::summary());
}
