// Lists, named elements, lists within lists, repetition and splices: paths are what PyTorch would call them.

use plimsoll::network;

network! {
    struct Net(x: f32[8]) {
        linear(8),
        features: [linear(8), act: relu, [linear(8), norm: layernorm]],
        [linear(8); 2],
        stage: [..[linear(8), relu], ..[[linear(8)]; 2], ..Pair(8), last: linear(2)],
    }

    block Pair(width) {
        linear(width),
        tail: linear(width),
    }
}

fn main() {
    let paths: Vec<&str> = Net::LAYERS.iter().map(|row| &*row.path).collect();
    assert_eq!(
        paths,
        [
            "x", "0", "features.0", "features.act", "features.2.0", "features.2.norm", "2.0", "2.1", "stage.0", "stage.1",
            "stage.2.0", "stage.3.0", "stage.4", "stage.tail", "stage.last"
        ]
    );
    // Ten linear layers of 8 x 8 + 8, a norm of 16, and one of 2 x 8 + 2.
    assert_eq!(Net::PARAMETERS, 10 * 72 + 16 + 18);
}
