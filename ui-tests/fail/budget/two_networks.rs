// Each of two networks fails on its own.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(1 MB)]
    pub struct Student(image: f32[3, 32, 32]) {
        flatten, linear(100), relu, linear(10),
    }
}

network! {
    #[infer(batch = 64)]
    #[budget(5 MB)]
    pub struct Teacher(image: f32[3, 32, 32]) {
        flatten, linear(1000), relu, linear(10),
    }
}

fn main() {}
