// Where a network is declared inside a function.

use plimsoll::network;

fn main() {
    network! {
        #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
        #[budget(1 MB)]
        struct Net(image: f32[3, 32, 32]) {
            flatten, linear(100), relu, linear(10),
        }
    }
    println!("{}", Net::PEAK_BYTES);
}
