use plimsoll::network;

network! {
    #[train]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
