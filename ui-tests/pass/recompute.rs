use plimsoll::{Network, network};

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(24 MB, recompute)]
    struct Deep(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 4, optimizer = adam, loss = cross_entropy)]
    struct Mlp(image: f32[3, 32, 32]) {
        flatten, linear(128), relu, linear(10),
    }
}

network! {
    #[train(batch = 4, optimizer = adam, loss = cross_entropy)]
    #[without(row_tiles, momentum_gradients, cheap_recomputation)]
    struct Plain(image: f32[3, 32, 32]) {
        flatten, linear(128), relu, linear(10),
    }
}

const _: () = assert!(Deep::PEAK_BYTES <= 24_000_000 && Deep::RECOMPUTE_FLOPS > 0);
const _: () = assert!(Mlp::RECOMPUTE_FLOPS == 0);
// A whole gradient of the first weight, 3072 x 128 floats, against a tile of 21 rows.
const _: () = assert!(Plain::PEAK_BYTES - Mlp::PEAK_BYTES > 1_300_000 - 10_000);
const _: () = assert!(<Plain as Network>::PEAK_BYTES == Plain::PEAK_BYTES);

fn main() {}
