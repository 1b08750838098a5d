// Python's and Rust's `self`: the members are in scope by themselves.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        fc1: linear(64),
        fc2: linear(10),

        fn forward(self, x) {
            let y = self.fc1(x);
            self.fc2(y.relu())
        }
    }
}

fn main() {}
