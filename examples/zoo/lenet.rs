//! LeNet for handwritten digits, with what has become usual since: relu and max-pooling.
//!
//! Yann LeCun, Léon Bottou, Yoshua Bengio and Patrick Haffner, *Gradient-Based Learning Applied to Document Recognition*,
//! 1998: LeNet-5.
//!
//! Left out: the squashing functions, the trained subsampling, the sparse second convolution and the radial output of 1998.

use plimsoll::network;

network! {
    /// LeNet-5: two convolutions, three linear layers.
    #[train(batch = 64, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    #[budget(8 MB)]
    pub struct LeNet(image: f32[1, 28, 28]) {
        conv2d(6, kernel = 5, padding = 2), relu, maxpool2d(2),
        conv2d(16, kernel = 5), relu, maxpool2d(2),
        flatten,
        linear(120), relu,
        linear(84), relu,
        linear(10),
    }
}

fn main() {
    println!("{}", LeNet::summary());
}
