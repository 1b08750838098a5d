use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = mse)]
    struct Autoencoder(pixels: f32[784]) {
        linear(784), act: relu, decode: tied(act),
    }
}

fn main() {}
