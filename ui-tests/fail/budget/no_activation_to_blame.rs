// One layer, most of it input: a smaller batch is all that helps.

use plimsoll::network;

network! {
    #[train(batch = 100_000, optimizer = sgd(lr = 0.1), loss = mse)]
    #[budget(100 MB)]
    struct Regression(features: f32[512]) {
        linear(1),
    }
}

fn main() {}
