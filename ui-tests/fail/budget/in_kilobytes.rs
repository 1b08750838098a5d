use plimsoll::network;

network! {
    #[train(batch = 16, optimizer = sgd(lr = 0.1), loss = mse)]
    #[budget(20 KB)]
    struct Tiny(x: f32[64]) {
        linear(64), tanh, linear(1),
    }
}

fn main() {}
