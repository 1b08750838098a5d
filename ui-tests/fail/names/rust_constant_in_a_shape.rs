use plimsoll::network;

const SIDE: usize = 32;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, SIDE, SIDE]) {
        flatten, linear(10),
    }
}

fn main() {
    println!("{SIDE}");
}
