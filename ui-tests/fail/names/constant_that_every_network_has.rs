use plimsoll::network;

network! {
    #[train(batch = BATCH, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        const BATCH = 64;
        const PARAMETERS = 1000;

        linear(PARAMETERS), relu, linear(10),
    }
}

fn main() {
    println!("{} {}", Net::BATCH, Net::PARAMETERS);
}
