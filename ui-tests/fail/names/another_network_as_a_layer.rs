use plimsoll::network;

network! {
    struct Backbone(pixels: f32[784]) {
        linear(64), relu,
    }
}

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(pixels: f32[784]) {
        Backbone, linear(10),
    }
}

fn main() {
    println!("{}", Backbone::PARAMETERS);
}
