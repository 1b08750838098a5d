use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = mse)]
    struct Autoencoder(pixels: f32[784]) {
        decode: tied(encode), encode: linear(784),
    }
}

fn main() {}
