use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Hidden(width = 64, drop = 0.5), linear(10),
    }

    block Hidden(width, dropout_rate = 0.5) {
        linear(width), relu, dropout(dropout_rate),
    }
}

fn main() {}
