use plimsoll::network;

network! {
    #[infer(batch = 128)]
    #[budget(10 MB)]
    struct Net(image: f32[3, 64, 64]) {
        conv2d(32, kernel = 3), relu, maxpool2d(2), flatten, linear(10),
    }
}

fn main() {}
