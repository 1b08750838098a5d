use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = mse)]
    struct Net(query: f32[64], key: f32[32]) {
        fc: linear(1),

        fn forward(query, key) {
            (query * key).fc()
        }
    }
}

fn main() {}
