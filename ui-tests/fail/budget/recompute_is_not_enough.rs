use plimsoll::network;

// Seven equal images of 16 channels at batch 64: with two of them and their gradients at once, 8 MB are too little.
network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(8 MB, recompute)]
    struct Deep(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        flatten, linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    #[budget(24 MB)]
    struct Offered(image: f32[3, 32, 32]) {
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        conv2d(16, kernel = 3, padding = 1), relu,
        flatten, linear(10),
    }
}

fn main() {}
