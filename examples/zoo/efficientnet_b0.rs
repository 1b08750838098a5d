//! EfficientNet-B0 for ImageNet.
//!
//! Mingxing Tan and Quoc V. Le, *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks*, 2019. The paper
//! trains with RMSProp; this is SGD with momentum.
//!
//! Left out: stochastic depth, which has no parameters. The network without it is the one that evaluates.

use plimsoll::network;

network! {
    /// EfficientNet-B0: the inverted bottlenecks of MobileNetV2, with squeeze-and-excitation in the middle.
    #[train(batch = 32, optimizer = sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-5), loss = cross_entropy)]
    #[budget(5 GB)]
    pub struct EfficientNetB0(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            ConvNorm(32, kernel = 3, stride = 2),
            [[block: [
                ConvNorm(32, kernel = 3, groups = 32),
                SqueezeExcitation(32, 8),
                [conv2d(16, kernel = 1, bias = false), batchnorm2d],
            ]]],
            [Change(16, 24, kernel = 3, stride = 2), Residual(24, kernel = 3)],
            [Change(24, 40, kernel = 5, stride = 2), Residual(40, kernel = 5)],
            [Change(40, 80, kernel = 3, stride = 2), ..[Residual(80, kernel = 3); 2]],
            [Change(80, 112, kernel = 5), ..[Residual(112, kernel = 5); 2]],
            [Change(112, 192, kernel = 5, stride = 2), ..[Residual(192, kernel = 5); 3]],
            [Change(192, 320, kernel = 3)],
            ConvNorm(1280, kernel = 1),
        ],
        avgpool: adaptive_avgpool2d(1),
        flatten,
        classifier: [dropout(0.2), linear(CLASSES)],
    }

    // Between stages, the number of channels changes, and nothing can be added to the input.
    block Change(input, channels, kernel, stride = 1) {
        block: Inverted(input, channels, kernel = kernel, stride = stride),
    }

    block Residual(channels, kernel) {
        block: Inverted(channels, channels, kernel = kernel),

        fn forward(x) { x + block(x) }
    }

    block Inverted(input, channels, kernel, stride = 1) {
        ConvNorm(6 * input, kernel = 1),
        ConvNorm(6 * input, kernel = kernel, stride = stride, groups = 6 * input),
        SqueezeExcitation(6 * input, input / 4),
        [conv2d(channels, kernel = 1, bias = false), batchnorm2d],
    }

    // Weighs each channel by what the whole image has in it.
    block SqueezeExcitation(channels, narrow) {
        fc1: conv2d(narrow, kernel = 1),
        fc2: conv2d(channels, kernel = 1),

        fn forward(x) {
            x * x.adaptive_avgpool2d(1).fc1().silu().fc2().sigmoid()
        }
    }

    block ConvNorm(channels, kernel, stride = 1, groups = 1) {
        conv2d(channels, kernel = kernel, stride = stride, padding = (kernel - 1) / 2, groups = groups, bias = false),
        batchnorm2d,
        silu,
    }
}

fn main() {
    println!("{}", EfficientNetB0::summary());
}
