use plimsoll::network;

network! {
    #[trian(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[buget(8 MB)]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
