// Adam keeps two numbers for each weight, and there are many weights.

use plimsoll::network;

network! {
    #[train(batch = 8, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    #[budget(100 MB)]
    struct Wide(pixels: f32[1024]) {
        linear(4096), relu, linear(2048), relu, linear(10),
    }
}

fn main() {}
