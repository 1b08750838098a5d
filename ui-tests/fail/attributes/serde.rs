use plimsoll::network;

network! {
    #[derive(Clone, Copy)]
    #[serde(rename_all = "snake_case")]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
