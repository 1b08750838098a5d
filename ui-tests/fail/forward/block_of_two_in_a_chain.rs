use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        linear(64), Merge(10),
    }

    block Merge(width) {
        fc: linear(width),

        fn forward(x, skip) {
            concat(x, skip).fc()
        }
    }
}

fn main() {}
