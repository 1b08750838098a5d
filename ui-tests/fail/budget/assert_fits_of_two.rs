// Each network fits its own budget, but the two do not share one card.

use plimsoll::{assert_fits, network};

network! {
    #[infer(batch = 64)]
    #[budget(20 MB)]
    pub struct Teacher(image: f32[3, 32, 32]) {
        flatten, linear(1000), relu, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(20 MB)]
    pub struct Student(image: f32[3, 32, 32]) {
        flatten, linear(100), relu, linear(10),
    }
}

assert_fits!(16 MB: Teacher::INFERENCE_BYTES + Student::PEAK_BYTES);

fn main() {}
