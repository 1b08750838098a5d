use plimsoll::network;

network! {
    struct First(pixels: f32[784]) {
        linear(10),
    }

    struct Second(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {
    println!("{}", First::PEAK_BYTES);
}
