use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        [[[[Hidden; 100]; 100]; 100]; 100], linear(10),
    }

    block Hidden {
        linear(784), relu,
    }
}

fn main() {}
