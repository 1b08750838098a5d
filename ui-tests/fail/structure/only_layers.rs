use plimsoll::network;

network! {
    conv2d(64, kernel = 3), relu, flatten, linear(10)
}

fn main() {}
