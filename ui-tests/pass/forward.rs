// `let`, shadowing, both spellings of a call, operators between values and with numbers, a residual connection.

use plimsoll::network;

network! {
    #[train(batch = 2, optimizer = sgd, loss = mse)]
    struct Net(x: f32[4]) {
        const HALF = 0.5;

        fc1: linear(4),
        fc2: linear(4),
        head: [relu, linear(1)],

        fn forward(x) {
            let y = x.fc1().relu();
            let y = fc2(y) * HALF + x;
            let n = 2 * 3;
            let z = (1 - y) * y - x / n + -x;
            head(dropout(z, 0.1).tanh())
        }
    }
}

fn main() {
    assert_eq!(Net::PARAMETERS, 2 * (4 * 4 + 4) + (4 + 1));
    let kinds: Vec<&str> = Net::LAYERS.iter().skip(1).map(|row| row.kind).collect();
    assert_eq!(
        kinds,
        [
            "linear", "relu", "linear", "affine", "add", "affine", "mul", "affine", "sub", "affine", "add", "dropout",
            "tanh", "relu", "linear"
        ]
    );
}
