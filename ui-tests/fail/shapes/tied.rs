// The weight of an encoder of 784 -> 64 takes 784 numbers, not 32.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = mse)]
    struct Autoencoder(pixels: f32[784]) {
        embed: linear(64), relu, linear(32), decode: tied(embed),
    }
}

fn main() {}
