// A learned vector, a learned factor for each channel, and a class token.

use plimsoll::network;

network! {
    #[train(batch = 2, optimizer = adamw, loss = l1)]
    struct Net(x: f32[6, 8]) {
        gain: parameter([8], init = 1.0),
        position: parameter([6, 8], std = 0.02),
        each: scale(1e-6),

        fn forward(x) {
            each(x * gain + position)
        }
    }
}

fn main() {
    assert_eq!(Net::PARAMETERS, 8 + 48 + 6);
}
