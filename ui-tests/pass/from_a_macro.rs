// Networks written by a `macro_rules!` macro, whose expressions bind as a whole.

use plimsoll::network;

macro_rules! perceptron {
    ($name:ident, $width:expr, $act:ident) => {
        network! {
            struct $name(x: f32[10]) { linear(2 * $width), $act, linear(1) }
        }
    };
}

perceptron!(Small, 1 + 2, relu);
perceptron!(Large, 50, tanh);

fn main() {
    assert_eq!(Small::PARAMETERS, 6 * 10 + 6 + 6 + 1);
    assert_eq!(Large::PARAMETERS, 100 * 10 + 100 + 100 + 1);
}
