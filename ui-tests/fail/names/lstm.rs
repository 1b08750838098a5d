use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(words: f32[128, 64]) {
        LSTM(64), linear(10),
    }
}

fn main() {}
