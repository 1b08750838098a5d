// Frozen members have no gradient and no optimizer state.

use plimsoll::network;

network! {
    #[train(batch = 2, optimizer = adam, loss = cross_entropy)]
    struct Net(x: f32[64]) {
        #[freeze]
        backbone: [linear(32), relu, Hidden],
        #[freeze] linear(8),
        head: linear(4),
    }

    block Hidden {
        linear(16), batchnorm1d,
    }
}

fn main() {
    let frozen = (64 * 32 + 32) + (32 * 16 + 16 + 2 * 16) + (16 * 8 + 8);
    assert_eq!(Net::PARAMETERS, 8 * 4 + 4);
    assert_eq!(Net::PARAMETER_BYTES, 4 * (frozen + Net::PARAMETERS));
    assert_eq!((Net::GRADIENT_BYTES, Net::OPTIMIZER_BYTES), (4 * 36, 2 * 4 * 36));
    assert_eq!(Net::BUFFER_BYTES, 2 * 16 * 4);
}
