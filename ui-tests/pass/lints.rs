//! A network that nothing uses meets the strictest lints, each on the crate or on its type.
#![deny(warnings)]
#![forbid(unused, missing_docs)]

plimsoll::network! {
    #[forbid(dead_code)]
    struct Plain(x: f32[8]) { const WIDTH = 4; const SIZES = [1, -2]; linear(WIDTH), reshape([4]) }
}

/// With training and a budget, more is generated.
pub mod trained {
    plimsoll::network! {
        #[deny(dead_code)]
        #[derive(Clone, Copy, Debug, Default)]
        #[budget(1 GB)]
        #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
        struct Trained(x: f32[8]) { linear(4) }
    }
}

fn main() {}
