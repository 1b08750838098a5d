// Consts in any order, of any kind, in shapes, sizes, settings and blocks; the type has them all.

use plimsoll::network;

network! {
    #[train(batch = SAMPLES / 2, optimizer = adam(lr = RATE), loss = cross_entropy)]
    pub struct Net(image: f32[CHANNELS, SIDE, SIDE]) {
        /// Width of the hidden layer.
        const WIDTH = (CHANNELS * SIDE).max(16) - 1 % 2;
        const CHANNELS = 3;
        const SIDE = 0x10;
        const SAMPLES = 64;
        const RATE = 1e-3;
        const DEEP = SIDE > 8 && true;
        const SHIFT = 2 - 5;
        const MEAN = [0.5, 0, 1];
        const ORDER = (1, 2, 0);

        normalize(mean = MEAN, std = [1, 1, 1]),
        permute(ORDER),
        Hidden,
        if DEEP { linear(min(WIDTH, 100)) },
        linear(10),
    }

    block Hidden {
        flatten, linear(WIDTH), relu,
    }
}

const NAMES: [&str; Net::CHANNELS] = ["red", "green", "blue"];

fn main() {
    assert_eq!((Net::WIDTH, Net::CHANNELS, Net::SIDE, Net::BATCH), (47, NAMES.len(), 16, 32));
    let (rate, deep, shift): (f64, bool, isize) = (Net::RATE, Net::DEEP, Net::SHIFT);
    assert_eq!((rate, deep, shift), (1e-3, true, -3));
    assert_eq!((Net::MEAN, Net::ORDER), (&[0.5, 0.0, 1.0][..], &[1, 2, 0][..]));
    assert_eq!(Net::PARAMETERS, 47 * 768 + 47 + 47 * 47 + 47 + 10 * 47 + 10);
}
