use plimsoll::network;

network! {
    #[infer(batch = 64)]
    #[budget(infer = 4 GB, recompute)]
    struct Idle(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(4 GB, recompute, recompute)]
    struct Twice(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(recompute)]
    struct Alone(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

fn main() {}
