// The network has a mistake, so its sizes are not known, and nothing is said of them.

use plimsoll::{assert_fits, network};

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    pub struct Net(image: f32[3, 32, 32]) {
        flatten, linear(100), rleu, linear(10),
    }
}

assert_fits!(1 KB: Net::PEAK_BYTES);

fn main() {}
