use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(32, kernel = 3, groups = 32), flatten, linear(10),
    }
}

fn main() {}
