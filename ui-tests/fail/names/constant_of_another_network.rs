use plimsoll::network;

network! {
    struct Teacher(pixels: f32[784]) {
        const HIDDEN = 64;

        linear(HIDDEN), relu, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Student(pixels: f32[784]) {
        linear(Teacher::HIDDEN), relu, linear(10),
    }
}

fn main() {
    println!("{}", Teacher::HIDDEN);
}
