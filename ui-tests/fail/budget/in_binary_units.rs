use plimsoll::network;

network! {
    #[train(batch = 128, optimizer = adamw(lr = 1e-3), loss = mse)]
    #[budget(6.5 MiB)]
    struct Autoencoder(pixels: f32[784]) {
        linear(400), relu, linear(20), linear(400), relu, linear(784),
    }
}

fn main() {}
