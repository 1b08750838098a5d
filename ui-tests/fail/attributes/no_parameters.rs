use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    struct Net(image: f32[10, 28, 28]) {
        relu, adaptive_avgpool2d(1), flatten,
    }
}

fn main() {}
