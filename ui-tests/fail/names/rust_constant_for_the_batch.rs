use plimsoll::network;

const BATCH_SIZE: usize = 32;

network! {
    #[train(batch = BATCH_SIZE, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        flatten, linear(10),
    }
}

fn main() {
    println!("{BATCH_SIZE}");
}
