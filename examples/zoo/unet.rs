//! A small U-Net: from an image to a value for each of its pixels.
//!
//! Olaf Ronneberger, Philipp Fischer and Thomas Brox, *U-Net: Convolutional Networks for Biomedical Image Segmentation*,
//! 2015. This one has half of the channels and three levels instead of four, and pads its convolutions, so that the output
//! is as large as the image.
//!
//! It is a hard case for memory: what the way down makes must stay until the way up wants it.

use plimsoll::network;

network! {
    /// A U-Net with 32 to 256 channels.
    #[train(batch = 16, optimizer = adam(lr = 1e-3), loss = mse)]
    #[budget(1 GB)]
    pub struct UNet(image: f32[3, 128, 128]) {
        down1: Twice(32),
        down2: Twice(64),
        down3: Twice(128),
        bottom: Twice(256),
        up3: Up(128),
        up2: Up(64),
        up1: Up(32),
        head: conv2d(1, kernel = 1),

        fn forward(image) {
            let a = image.down1();
            let b = a.maxpool2d(2).down2();
            let c = b.maxpool2d(2).down3();
            let d = c.maxpool2d(2).bottom();
            d.up3(c).up2(b).up1(a).head()
        }
    }

    block Twice(channels) {
        conv2d(channels, kernel = 3, padding = 1), relu,
        conv2d(channels, kernel = 3, padding = 1), relu,
    }

    // Twice the size, half of the channels, and beside them what the way down had at this size.
    block Up(channels) {
        grow: conv_transpose2d(channels, kernel = 2, stride = 2),
        merge: Twice(channels),

        fn forward(x, skip) { concat(skip, x.grow(), axis = 0).merge() }
    }
}

fn main() {
    println!("{}", UNet::summary());
}
