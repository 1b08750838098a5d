use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[3, 32, 32]) {
        Conv2d(64, kernel = 3), BatchNorm2d, ReLU, MaxPool2d(2), AdaptiveAvgPool2d(1), Flatten, Linear(10),
    }
}

fn main() {}
