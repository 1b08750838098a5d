use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: f32[8, 32, 32]) {
        [Basic; 16], flatten, linear(10),
    }

    block Basic {
        conv: conv2d(8, kernel = 3),

        fn forward(x) {
            relu(x + x.conv())
        }
    }
}

fn main() {}
