use plimsoll::network;

network! {
    #[budget(train = 12 GB)]
    struct Net(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

fn main() {}
