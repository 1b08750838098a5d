use plimsoll::network;

network! {
    #[infer(batch = 16)]
    #[budget(64 MB)]
    struct Wide(pixels: f32[4096]) {
        linear(4096), relu, linear(10),
    }
}

fn main() {}
