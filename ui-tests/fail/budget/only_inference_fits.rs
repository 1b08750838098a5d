use plimsoll::network;

network! {
    #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(50.8 MB)]
    struct Wide(pixels: f32[1024]) {
        linear(4096), relu, linear(2048), relu, linear(10),
    }
}

fn main() {}
