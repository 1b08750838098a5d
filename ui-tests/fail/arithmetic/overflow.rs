use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const HUGE = 4_000_000_000 * 4_000_000_000;

        linear(HUGE), relu, linear(10),
    }
}

fn main() {
    println!("{}", Net::HUGE);
}
