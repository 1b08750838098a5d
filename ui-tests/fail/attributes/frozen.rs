use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        #[frozen] backbone: linear(64), relu, linear(10),
    }
}

fn main() {}
