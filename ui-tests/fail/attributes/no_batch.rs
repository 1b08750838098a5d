use plimsoll::network;

network! {
    #[train(optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(8 MB)]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {
    println!("{} {}", Net::BATCH, Net::HEADROOM_BYTES);
}
