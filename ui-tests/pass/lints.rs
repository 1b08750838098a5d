//! A network that nothing uses meets the strictest lints, each on the crate or on its type.
#![deny(warnings)]
#![forbid(unused, missing_docs)]

plimsoll::network! {
    #[forbid(dead_code)]
    struct Plain(x: f32[8]) { const WIDTH = 4; const SIZES = [1, -2]; linear(WIDTH), reshape([4]) }
}

/// What is deprecated, where that may be allowed.
pub mod old {
    plimsoll::network! {
        #[deny(dead_code)]
        #[derive(Clone, Copy, Debug, Default)]
        struct Trained(x: f32[8]) { linear(4) }
    }
}

fn main() {}
