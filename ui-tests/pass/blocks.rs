// Parameters by position and by name, defaults that use earlier ones, blocks within blocks, a block without parameters.

use plimsoll::network;

network! {
    struct Net(x: f32[10]) {
        a: Hidden(4),
        b: Hidden(4, 6),
        c: Hidden(bias = false, width = 4),
        [Outer; 2],
    }

    block Hidden(width, inner = 2 * width, bias = true) {
        linear(inner, bias = bias), relu, linear(width, bias = bias),
    }

    block Outer {
        Hidden(3), tanh,
    }
}

fn main() {
    let linear = |from: u64, to: u64| to * from + to;
    let a = linear(10, 8) + linear(8, 4);
    let b = linear(4, 6) + linear(6, 4);
    let c = 8 * 4 + 4 * 8;
    let outer = linear(4, 6) + linear(6, 3) + linear(3, 6) + linear(6, 3);
    assert_eq!(Net::PARAMETERS, a + b + c + outer);
}
