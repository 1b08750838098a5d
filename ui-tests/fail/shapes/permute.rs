use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[28, 28, 1]) {
        permute([0, 3, 1, 2]), conv2d(16, kernel = 3), flatten, linear(10),
    }
}

fn main() {}
