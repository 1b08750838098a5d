use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(query: f32[64, 64], key: f32[64, 64]) {
        fc: linear(10),

        fn forward(query, key) {
            (query @ key).flatten().fc()
        }
    }
}

fn main() {}
