use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Tree(8), linear(10),
    }

    block Tree(depth) {
        linear(64), relu, if depth > 0 { Tree(depth - 1) },
    }
}

fn main() {}
