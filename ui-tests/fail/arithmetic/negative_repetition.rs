use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const DEPTH = 2;

        [linear(784); DEPTH - 3], linear(10),
    }
}

fn main() {}
