use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[1_000_000]) {
        linear(100_000_000), relu, linear(10),
    }
}

fn main() {}
