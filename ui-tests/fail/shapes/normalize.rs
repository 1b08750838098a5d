// Mean and standard deviation of three channels, for grey images.

use plimsoll::network;

network! {
    #[train(batch = 64, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Net(image: u8[1, 28, 28]) {
        normalize(mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]), flatten, linear(10),
    }
}

fn main() {}
