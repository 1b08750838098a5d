use plimsoll::network;

network! {
    #[train(batch = 4, optimizer = adam, loss = cross_entropy)]
    #[budget(32 MB)]
    struct Wide(pixels: f32[4096]) {
        linear(4096), relu, linear(4096), relu, linear(10),
    }
}

fn main() {}
