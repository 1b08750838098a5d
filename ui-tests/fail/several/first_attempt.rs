// What a person who knows PyTorch might write on the first day.

use plimsoll::network;

network! {
    #[train(batch_size = 64, optimizer = Adam(lr = 1e-3), loss = CrossEntropy)]
    #[budget(12 gb)]
    pub struct Net(image: f32[3, 32, 32]) {
        conv1: Conv2d(64, kernel_size = 3),
        relu,
        flatten,
        fc: Linear(CLASSES),
    }
}

fn main() {
    println!("{}", Net::PEAK_BYTES);
}
