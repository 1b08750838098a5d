use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[784], extra: f32[10]) {
        linear(64), relu, linear(10),
    }
}

fn main() {}
