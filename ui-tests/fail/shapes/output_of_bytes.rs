use plimsoll::network;

network! {
    struct Net(image: u8[1, 28, 28]) {
        flatten,
    }
}

fn main() {}
