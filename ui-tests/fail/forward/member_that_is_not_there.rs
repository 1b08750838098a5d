use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        hidden: linear(64),
        fc: linear(10),

        fn forward(x) {
            x.hiden().relu().softplus().fc()
        }
    }
}

fn main() {}
