use plimsoll::network;

mod config {
    pub const CLASSES: usize = 10;
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(64), relu, linear(crate::config::CLASSES),
    }
}

fn main() {
    println!("{}", config::CLASSES);
}
