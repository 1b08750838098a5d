// What two of the messages in `fail/budget` suggest builds, and needs what they say.

use plimsoll::network;
use plimsoll::plan::units::Units;

/// `with_a_reserve` suggests a smaller batch: "batch = 161: needs 400 MB".
mod smaller {
    use super::network;

    network! {
        #[train(batch = 161, optimizer = sgd(lr = 0.1, momentum = 0.9), loss = cross_entropy)]
        #[budget(1 GB, reserve = 600 MB)]
        pub struct Net(image: f32[3, 64, 64]) {
            conv2d(64, kernel = 3, padding = 1), relu, maxpool2d(2),
            conv2d(64, kernel = 3, padding = 1), relu, maxpool2d(2),
            flatten, linear(10),
        }
    }
}

/// `another_optimizer_fits` suggests one with no state: "optimizer = sgd: needs 51.1 MB".
mod without_state {
    use super::network;

    network! {
        #[train(batch = 8, optimizer = sgd, loss = cross_entropy)]
        #[budget(100 MB)]
        pub struct Wide(pixels: f32[1024]) {
            linear(4096), relu, linear(2048), relu, linear(10),
        }
    }
}

fn main() {
    let needs = |bytes| Units::Decimal.format(bytes);
    assert_eq!(needs(smaller::Net::PEAK_BYTES), "400 MB");
    assert_eq!(needs(without_state::Wide::PEAK_BYTES), "51.1 MB");
}
