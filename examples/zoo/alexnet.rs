//! AlexNet for ImageNet, in the one-column form that torchvision has.
//!
//! Alex Krizhevsky, *One weird trick for parallelizing convolutional neural networks*, 2014; the network that won ImageNet
//! 2012 is from Alex Krizhevsky, Ilya Sutskever and Geoffrey E. Hinton, *ImageNet Classification with Deep Convolutional
//! Neural Networks*, 2012.
//!
//! Left out, as in torchvision: the local response normalization of 2012.

use plimsoll::network;

network! {
    /// AlexNet: five convolutions that see, three linear layers that decide and hold 96% of the weights.
    #[train(batch = 128, optimizer = sgd(lr = 0.01, momentum = 0.9, weight_decay = 5e-4), loss = cross_entropy)]
    #[budget(2 GB)]
    pub struct AlexNet(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            conv2d(64, kernel = 11, stride = 4, padding = 2), relu,
            maxpool2d(3, stride = 2),
            conv2d(192, kernel = 5, padding = 2), relu,
            maxpool2d(3, stride = 2),
            conv2d(384, kernel = 3, padding = 1), relu,
            conv2d(256, kernel = 3, padding = 1), relu,
            conv2d(256, kernel = 3, padding = 1), relu,
            maxpool2d(3, stride = 2),
        ],
        avgpool: adaptive_avgpool2d(6),
        flatten,
        classifier: [
            dropout, linear(4096), relu,
            dropout, linear(4096), relu,
            linear(CLASSES),
        ],
    }
}

fn main() {
    println!("{}", AlexNet::summary());
}
