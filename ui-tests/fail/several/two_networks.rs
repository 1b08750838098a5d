use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    pub struct First(pixels: f32[784]) {
        liner(64), relu, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    pub struct Second(pixels: f32[784]) {
        linear(64), relu, linear(0),
    }
}

fn main() {
    println!("{} {}", First::PEAK_BYTES, Second::PEAK_BYTES);
}
