use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Down(8), linear(10),
    }

    block Down(width) {
        linear(width), relu, Up(width),
    }

    block Up(width) {
        linear(2 * width), relu, Down(width),
    }
}

fn main() {}
