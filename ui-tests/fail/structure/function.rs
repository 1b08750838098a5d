use plimsoll::network;

network! {
    fn net(x) {
        x.linear(10)
    }
}

fn main() {}
