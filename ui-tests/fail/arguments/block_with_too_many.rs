use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Hidden(784, 64, 0.5), linear(10),
    }

    block Hidden(width, p = 0.5) {
        linear(width), relu, dropout(p),
    }
}

fn main() {}
