use plimsoll::network;

network! {
    struct Net(pixels: f32[784]) {
        #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
        backbone: linear(64), relu, linear(10),
    }
}

fn main() {}
