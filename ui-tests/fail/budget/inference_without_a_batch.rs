// Without `#[infer]` the batch is 1.

use plimsoll::network;

network! {
    #[budget(infer = 5 MB)]
    struct Net(image: f32[3, 256, 256]) {
        conv2d(64, kernel = 3), relu, maxpool2d(2), flatten, linear(10),
    }
}

fn main() {}
