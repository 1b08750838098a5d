use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        reshape([1, 28, 29]), conv2d(16, kernel = 3), flatten, linear(10),
    }
}

fn main() {}
