// `if`, `else if`, `else`, and none of them.

use plimsoll::network;

network! {
    struct Net(x: f32[16]) {
        const DEPTH = 3;
        const NORM = false;

        linear(16),
        norm: if NORM { layernorm },
        act: if DEPTH == 1 { relu } else if DEPTH < 3 || !NORM && DEPTH > 5 { tanh } else { [silu, linear(16)] },
        ..if DEPTH >= 3 { [dropout, linear(4)] },
        if true { identity } else { linear(0) },
    }
}

fn main() {
    let kinds: Vec<&str> = Net::LAYERS.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, ["input", "linear", "silu", "linear", "dropout", "linear", "identity"]);
    assert_eq!(Net::PARAMETERS, 2 * (16 * 16 + 16) + 4 * 16 + 4);
}
