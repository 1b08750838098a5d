use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net<const N: usize>(pixels: f32[784]) {
        linear(N), relu, linear(10),
    }
}

fn main() {}
