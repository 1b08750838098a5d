// What a module calls its own does not disturb what the macro writes.

use plimsoll::network;

#[allow(dead_code)]
struct Option;
#[allow(dead_code)]
struct String;
mod std {}
mod core {}

network! {
    #[train(batch = 2, optimizer = sgd, loss = mse)]
    #[budget(1 MB)]
    struct Net(x: f32[8]) { linear(2) }
}

fn main() {
    assert_eq!(Net::PARAMETERS, 18);
    assert!(Net::summary().contains("Net"));
}
