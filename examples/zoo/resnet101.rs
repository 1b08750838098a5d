//! ResNet-101 for ImageNet.
//!
//! Kaiming He, Xiangyu Zhang, Shaoqing Ren and Jian Sun, *Deep Residual Learning for Image Recognition*, 2015.
//!
//! As in torchvision, and unlike the paper, a bottleneck halves the image in its 3x3 convolution, not in its first 1x1: this
//! is known as version 1.5.

use plimsoll::network;

network! {
    /// ResNet-101: residual bottlenecks, narrow in the middle and four times as wide outside.
    #[train(batch = 32, optimizer = sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-4), loss = cross_entropy)]
    #[budget(12 GB)]
    pub struct ResNet101(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        conv1: conv2d(64, kernel = 7, stride = 2, padding = 3, bias = false),
        bn1: batchnorm2d,
        relu,
        maxpool2d(3, stride = 2, padding = 1),
        layer1: [Bottleneck(64, project = true), ..[Bottleneck(64); 2]],
        layer2: [Bottleneck(128, stride = 2, project = true), ..[Bottleneck(128); 3]],
        layer3: [Bottleneck(256, stride = 2, project = true), ..[Bottleneck(256); 22]],
        layer4: [Bottleneck(512, stride = 2, project = true), ..[Bottleneck(512); 2]],
        avgpool: adaptive_avgpool2d(1),
        flatten,
        fc: linear(CLASSES),
    }

    block Bottleneck(width, stride = 1, project = false) {
        conv1: conv2d(width, kernel = 1, bias = false),
        bn1: batchnorm2d,
        conv2: conv2d(width, kernel = 3, stride = stride, padding = 1, bias = false),
        bn2: batchnorm2d,
        conv3: conv2d(4 * width, kernel = 1, bias = false),
        bn3: batchnorm2d,
        downsample: if project { [conv2d(4 * width, kernel = 1, stride = stride, bias = false), batchnorm2d] },

        fn forward(x) {
            let y = x.conv1().bn1().relu().conv2().bn2().relu().conv3().bn3();
            relu(y + downsample(x))
        }
    }
}

fn main() {
    println!("{}", ResNet101::summary());
}
