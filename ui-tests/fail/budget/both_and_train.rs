use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(12 GB, train = 10 GB)]
    struct Net(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

fn main() {}
