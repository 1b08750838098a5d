// For inference only, for training only, and with a batch for each.

use plimsoll::network;

network! {
    #[infer(batch = 7)]
    struct Server(x: f32[8]) { linear(2) }
}

network! {
    struct One(x: f32[8]) { linear(2) }
}

network! {
    #[train(batch = 32, optimizer = sgd(lr = 0.1, momentum = 0.9, nesterov = true), loss = mse, accumulate = 4, clip_grad_norm = 1.0)]
    #[infer(batch = 2 * EVALUATION)]
    struct Trained(x: f32[8]) {
        const EVALUATION = 50;
        linear(2),
    }
}

fn main() {
    assert_eq!((Server::BATCH, One::BATCH, Trained::BATCH), (7, 1, 32));
    assert_eq!((Server::GRADIENT_BYTES, Server::OPTIMIZER_BYTES), (0, 0));
    // The weight of 64 bytes and the bias of 8, each padded to 256; seven inputs of 32 bytes, seven outputs of 8.
    assert_eq!(Server::PEAK_BYTES, 4 * 256);
    assert_eq!(Server::PEAK_BYTES, Server::INFERENCE_BYTES);
    assert_eq!(Trained::OPTIMIZER_BYTES, 4 * 18);
    assert_eq!(Trained::INPUT_BYTES, 32 * (32 + 8));
}
