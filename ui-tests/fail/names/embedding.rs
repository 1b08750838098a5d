use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(tokens: i32[128]) {
        embedding(50_000, 256), flatten, linear(10),
    }
}

fn main() {}
