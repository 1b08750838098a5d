//! ResNet-34 for ImageNet.
//!
//! Kaiming He, Xiangyu Zhang, Shaoqing Ren and Jian Sun, *Deep Residual Learning for Image Recognition*, 2015.

use plimsoll::network;

network! {
    /// ResNet-34: residual blocks of two 3x3 convolutions.
    #[train(batch = 32, optimizer = sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-4), loss = cross_entropy)]
    #[budget(3 GB)]
    pub struct ResNet34(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        conv1: conv2d(64, kernel = 7, stride = 2, padding = 3, bias = false),
        bn1: batchnorm2d,
        relu,
        maxpool2d(3, stride = 2, padding = 1),
        layer1: [Basic(64); 3],
        layer2: [Basic(128, stride = 2), ..[Basic(128); 3]],
        layer3: [Basic(256, stride = 2), ..[Basic(256); 5]],
        layer4: [Basic(512, stride = 2), ..[Basic(512); 2]],
        avgpool: adaptive_avgpool2d(1),
        flatten,
        fc: linear(CLASSES),
    }

    block Basic(channels, stride = 1) {
        conv1: conv2d(channels, kernel = 3, stride = stride, padding = 1, bias = false),
        bn1: batchnorm2d,
        conv2: conv2d(channels, kernel = 3, padding = 1, bias = false),
        bn2: batchnorm2d,
        downsample: if stride != 1 { [conv2d(channels, kernel = 1, stride = stride, bias = false), batchnorm2d] },

        fn forward(x) {
            let y = x.conv1().bn1().relu().conv2().bn2();
            relu(y + downsample(x))
        }
    }
}

fn main() {
    println!("{}", ResNet34::summary());
}
