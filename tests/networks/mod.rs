//! The networks that are compared with other frameworks, as these have them.

use plimsoll::network;

#[path = "../../examples/zoo/resnet50.rs"]
#[allow(dead_code)]
pub mod resnet50;
#[path = "../../examples/zoo/vgg16.rs"]
#[allow(dead_code)]
pub mod vgg16;

network! {
    /// A multi-layer perceptron.
    #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    pub struct Mlp(image: f32[3, 32, 32]) {
        flatten,
        linear(128),
        relu,
        linear(10),
    }
}

network! {
    /// LeNet on images of 28 x 28.
    #[train(batch = 64, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    pub struct LeNet(image: f32[1, 28, 28]) {
        conv2d(6, kernel = 5, padding = 2), relu, maxpool2d(2),
        conv2d(16, kernel = 5), relu, maxpool2d(2),
        flatten,
        linear(120), relu,
        linear(84), relu,
        linear(10),
    }
}

network! {
    /// torchvision's ResNet-18 on images of 32 x 32.
    #[train(batch = 64, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    pub struct ResNet18(image: f32[3, 32, 32]) {
        conv1: conv2d(64, kernel = 7, stride = 2, padding = 3, bias = false),
        bn1: batchnorm2d,
        relu,
        maxpool2d(3, stride = 2, padding = 1),
        layer1: [Basic(64), Basic(64)],
        layer2: [Basic(128, stride = 2), Basic(128)],
        layer3: [Basic(256, stride = 2), Basic(256)],
        layer4: [Basic(512, stride = 2), Basic(512)],
        avgpool: adaptive_avgpool2d(1),
        flatten,
        fc: linear(1000),
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
