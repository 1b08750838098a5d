use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = NLLLoss)]
    struct Net(pixels: f32[784]) {
        linear(10), softmax,
    }
}

fn main() {}
