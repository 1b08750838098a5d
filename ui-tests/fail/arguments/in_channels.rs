use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(in_channels = 3, out_channels = 64, kernel = 3), relu, flatten,
        linear(in_features = 64, out_features = 10),
    }
}

fn main() {}
