// Inputs of three element types; the targets of cross-entropy are one index a sample.

use plimsoll::network;

network! {
    #[train(batch = 5, optimizer = sgd, loss = cross_entropy)]
    struct Net(image: u8[3, 8, 8], extra: f32[4], _weights: i32[2]) {
        scale: normalize(mean = [0.5, 0.5, 0.5], std = [0.5, 0.5, 0.5]),
        merge: Merge(7),

        fn forward(image, extra, _weights) {
            image.scale().flatten().merge(extra)
        }
    }

    block Merge(classes) {
        fc: linear(classes),

        fn forward(x, other) {
            concat(x, other).fc()
        }
    }
}

fn main() {
    assert_eq!(Net::PARAMETERS, 7 * (3 * 8 * 8 + 4) + 7);
    assert_eq!(Net::INPUT_BYTES, 5 * (3 * 8 * 8 + 4 * 4 + 2 * 4 + 4));
}
