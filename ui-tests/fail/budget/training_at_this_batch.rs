// The design's own example: VGG-16 on a card with room for 3 GB, at batch 48.

use plimsoll::network;

network! {
    #[train(batch = 48, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    #[budget(3 GB)]
    pub struct Vgg16(image: f32[3, 224, 224]) {
        features: [
            ..Stage(64, 2), ..Stage(128, 2), ..Stage(256, 3), ..Stage(512, 3), ..Stage(512, 3),
        ],
        flatten,
        classifier: [
            linear(4096), relu, dropout,
            linear(4096), relu, dropout,
            linear(1000),
        ],
    }

    block Stage(channels, convs) {
        ..[..[[conv2d(channels, kernel = 3, padding = 1), relu]; convs], maxpool2d(2)],
    }
}

fn main() {}
