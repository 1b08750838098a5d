//! MobileNetV2 for ImageNet.
//!
//! Mark Sandler, Andrew Howard, Menglong Zhu, Andrey Zhmoginov and Liang-Chieh Chen, *MobileNetV2: Inverted Residuals and
//! Linear Bottlenecks*, 2018. The paper trains with RMSProp; this is SGD with momentum, as in torchvision's recipe.

use plimsoll::network;

network! {
    /// MobileNetV2: narrow between its blocks, six times as wide within them, where the convolutions are depthwise.
    #[train(batch = 32, optimizer = sgd(lr = 0.045, momentum = 0.9, weight_decay = 4e-5), loss = cross_entropy)]
    #[budget(4 GB)]
    pub struct MobileNetV2(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            ConvNorm(32, kernel = 3, stride = 2),
            [conv: [
                ConvNorm(32, kernel = 3, groups = 32),
                conv2d(16, kernel = 1, bias = false), batchnorm2d,
            ]],
            Change(16, 24, stride = 2), Residual(24),
            Change(24, 32, stride = 2), ..[Residual(32); 2],
            Change(32, 64, stride = 2), ..[Residual(64); 3],
            Change(64, 96), ..[Residual(96); 2],
            Change(96, 160, stride = 2), ..[Residual(160); 2],
            Change(160, 320),
            ConvNorm(1280, kernel = 1),
        ],
        adaptive_avgpool2d(1),
        flatten,
        classifier: [dropout(0.2), linear(CLASSES)],
    }

    // Between stages, the number of channels changes, and nothing can be added to the input.
    block Change(input, channels, stride = 1) {
        conv: Inverted(6 * input, channels, stride = stride),
    }

    block Residual(channels) {
        conv: Inverted(6 * channels, channels),

        fn forward(x) { x + conv(x) }
    }

    block Inverted(wide, channels, stride = 1) {
        ConvNorm(wide, kernel = 1),
        ConvNorm(wide, kernel = 3, stride = stride, groups = wide),
        conv2d(channels, kernel = 1, bias = false), batchnorm2d,
    }

    block ConvNorm(channels, kernel, stride = 1, groups = 1) {
        conv2d(channels, kernel = kernel, stride = stride, padding = (kernel - 1) / 2, groups = groups, bias = false),
        batchnorm2d,
        relu6,
    }
}

fn main() {
    println!("{}", MobileNetV2::summary());
}
