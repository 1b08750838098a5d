// Networks that share a card.

use plimsoll::{assert_fits, network};

network! {
    #[infer(batch = 8)]
    struct Teacher(image: f32[3, 32, 32]) { flatten, linear(512), relu, linear(10) }
}

network! {
    #[train(batch = 8, optimizer = adam, loss = cross_entropy)]
    struct Student(image: f32[3, 32, 32]) { flatten, linear(64), relu, linear(10) }
}

assert_fits!(24 GiB: Teacher::INFERENCE_BYTES + Student::PEAK_BYTES);
assert_fits!(12.9 MB: 2 * Teacher::INFERENCE_BYTES);
assert_fits!(8 MiB: Student::PEAK_BYTES);
assert_fits!(1 KB: 1000);

fn main() {
    assert_fits!(1 B: 1);
}
