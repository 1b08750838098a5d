use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[1, 28, 28]) {
        flatten, conv2d(16, kernel = 3), linear(10),
    }
}

fn main() {}
