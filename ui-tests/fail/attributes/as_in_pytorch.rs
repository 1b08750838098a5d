use plimsoll::network;

network! {
    #[train(batch_size = 64, optimizer = AdamW(learning_rate = 1e-3), criterion = CrossEntropyLoss())]
    struct Net(pixels: f32[784]) {
        linear(10),
    }
}

fn main() {}
