//! ConvNeXt-Tiny for ImageNet.
//!
//! Zhuang Liu, Hanzi Mao, Chao-Yuan Wu, Christoph Feichtenhofer, Trevor Darrell and Saining Xie, *A ConvNet for the 2020s*,
//! 2022.
//!
//! Left out: stochastic depth, which has no parameters. The network without it is the one that evaluates.

use plimsoll::network;

network! {
    /// ConvNeXt-Tiny: a convolutional network built the way transformers are.
    #[train(batch = 32, optimizer = adamw(lr = 1e-3, weight_decay = 0.05), loss = cross_entropy)]
    #[budget(7 GB)]
    pub struct ConvNextTiny(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            [conv2d(96, kernel = 4, stride = 4), layernorm2d(eps = 1e-6)],
            [Next(96); 3],
            Halve(192),
            [Next(192); 3],
            Halve(384),
            [Next(384); 9],
            Halve(768),
            [Next(768); 3],
        ],
        avgpool: adaptive_avgpool2d(1),
        classifier: [layernorm2d(eps = 1e-6), flatten, linear(CLASSES)],
    }

    block Next(channels) {
        layer_scale: parameter([channels, 1, 1], init = 1e-6),
        block: [
            conv2d(channels, kernel = 7, padding = 3, groups = channels),
            permute([1, 2, 0]),
            layernorm(eps = 1e-6),
            linear(4 * channels),
            gelu,
            linear(channels),
            permute([2, 0, 1]),
        ],

        fn forward(x) { x + layer_scale * block(x) }
    }

    block Halve(channels) {
        layernorm2d(eps = 1e-6),
        conv2d(channels, kernel = 2, stride = 2),
    }
}

fn main() {
    println!("{}", ConvNextTiny::summary());
}
