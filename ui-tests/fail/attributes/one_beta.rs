use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3, betas = 0.9), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
