//! Types of the user's may have the names of Rust's own.
#![allow(non_camel_case_types, dead_code)]

struct u64;
struct f64;
struct bool;
struct str;
type usize = String;
type isize = String;

plimsoll::network! {
    #[budget(1 GB)]
    #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    pub struct Net(x: f32[8]) {
        const WIDTH = 4;
        const DEEP = true;
        const RATE = 0.5;
        const BELOW = -1;
        const SIZES = [1, 2];
        const MEANS = [1, 0.5];
        linear(WIDTH), dropout(RATE),
    }
}

fn main() {
    assert_eq!(Net::WIDTH, 4);
    assert_eq!(Net::MEANS, [1.0, 0.5]);
}
