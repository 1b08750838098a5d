use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[784], mask: f32[784]) {
        fc: linear(10),

        fn forward(image, mask) {
            image.fc()
        }
    }
}

fn main() {}
