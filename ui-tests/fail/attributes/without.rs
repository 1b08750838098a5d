use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[without(row_tile, row_tiles, row_tiles, 3)]
    struct Names(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[without()]
    struct Nothing(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[without]
    #[without(row_tiles)]
    #[without(momentum_gradients)]
    struct Again(image: f32[3, 32, 32]) {
        #[without(row_tiles)]
        flatten, linear(10),
    }
}

network! {
    #[infer(batch = 64)]
    #[without(row_tiles)]
    struct Idle(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

fn main() {}
