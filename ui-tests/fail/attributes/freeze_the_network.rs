use plimsoll::network;

network! {
    #[freeze]
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
