// With Adam not even one sample fits; with SGD some do, but not as many as declared.

use plimsoll::network;

network! {
    #[train(batch = 512, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(95 MB)]
    struct Wide(pixels: f32[1024]) {
        linear(4096), relu, linear(2048), relu, linear(10),
    }
}

fn main() {}
