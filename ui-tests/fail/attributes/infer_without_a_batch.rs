use plimsoll::network;

network! {
    #[infer]
    struct Net(pixels: f32[784]) {
        linear(64), relu, linear(10),
    }
}

fn main() {}
