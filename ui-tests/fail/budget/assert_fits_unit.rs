use plimsoll::{assert_fits, network};

network! {
    #[infer(batch = 64)]
    struct Net(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

assert_fits!(16 mb: Net::INFERENCE_BYTES);

fn main() {}
