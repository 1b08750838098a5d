//! A multi-layer perceptron for CIFAR-10: the smallest network that learns anything from an image.
//!
//! The images are from Alex Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009.

use plimsoll::network;

network! {
    /// The CIFAR-10 multi-layer perceptron, 3072-128-10.
    #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(8 MB)]
    pub struct CifarMlp(image: f32[3, 32, 32]) {
        flatten,
        fc1: linear(128),
        relu,
        fc2: linear(10),
    }
}

fn main() {
    println!("{}", CifarMlp::summary());
}
