use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = mse)]
    struct Net(image: f32[3, 32, 32]) {
        conv2d(8, kernel = 3, padding = 1), upsample(scale_factor = 2, mode = bilinear),
    }
}

fn main() {}
