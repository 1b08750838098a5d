use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        head: [norm: layernorm, fc: linear(10)],

        fn forward(x) {
            x.head.norm().fc()
        }
    }
}

fn main() {}
