//! The peak of one training step beside the best that PyTorch (eager, compiled, or with the optimizer in the backward pass)
//! and JAX reach for the same network, batch and optimizer, in MiB. The peers' figures were measured on a CPU with
//! PyTorch 2.15 and JAX 0.10 by their own allocators' counts; `docs/measurements.md` says how.

use plimsoll::Network;
use plimsoll::network;

#[path = "../examples/zoo/resnet50.rs"]
#[allow(dead_code)]
mod resnet50;
#[path = "../examples/zoo/vgg16.rs"]
#[allow(dead_code)]
mod vgg16;

network! {
    #[train(batch = 4, optimizer = adam(lr = 1e-3), loss = cross_entropy)]
    struct Mlp(image: f32[3, 32, 32]) {
        flatten,
        linear(128),
        relu,
        linear(10),
    }
}

network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    struct LeNet(image: f32[1, 28, 28]) {
        conv2d(6, kernel = 5, padding = 2), relu, maxpool2d(2),
        conv2d(16, kernel = 5), relu, maxpool2d(2),
        flatten,
        linear(120), relu,
        linear(84), relu,
        linear(10),
    }
}

// torchvision's ResNet-18 on images of 32 x 32.
network! {
    #[train(batch = 64, optimizer = sgd(lr = 0.01, momentum = 0.9), loss = cross_entropy)]
    struct ResNet18(image: f32[3, 32, 32]) {
        conv1: conv2d(64, kernel = 7, stride = 2, padding = 3, bias = false),
        bn1: batchnorm2d,
        relu,
        maxpool2d(3, stride = 2, padding = 1),
        layer1: [Basic(64), Basic(64)],
        layer2: [Basic(128, stride = 2), Basic(128)],
        layer3: [Basic(256, stride = 2), Basic(256)],
        layer4: [Basic(512, stride = 2), Basic(512)],
        avgpool: adaptive_avgpool2d(1),
        flatten,
        fc: linear(1000),
    }

    block Basic(channels, stride = 1) {
        conv1: conv2d(channels, kernel = 3, stride = stride, padding = 1, bias = false),
        bn1: batchnorm2d,
        conv2: conv2d(channels, kernel = 3, padding = 1, bias = false),
        bn2: batchnorm2d,
        downsample: if stride != 1 { [conv2d(channels, kernel = 1, stride = stride, bias = false), batchnorm2d] },

        fn forward(x) {
            let y = x.conv1().bn1().relu().conv2().bn2();
            relu(y + downsample(x))
        }
    }
}

fn peak<N: Network>(batch: u64) -> f64 {
    N::graph().batch(batch).plan().expect("a plan").peak_bytes() as f64 / f64::from(1 << 20)
}

#[test]
fn no_peer_needs_less() {
    let table = [
        ("mlp 4", peak::<Mlp>(4), 6.07),
        ("mlp 64", peak::<Mlp>(64), 6.80),
        ("lenet 64", peak::<LeNet>(64), 4.90),
        ("vgg16 4", peak::<vgg16::Vgg16>(4), 1727.0),
        ("resnet18 64", peak::<ResNet18>(64), 135.0),
        ("resnet50 4", peak::<resnet50::ResNet50>(4), 539.5),
    ];
    for (name, ours, peer) in table {
        println!("{name}: {ours:.3} MiB, best peer {peer} MiB, ratio {:.3}", ours / peer);
    }
    for (name, ours, peer) in table {
        assert!(ours <= peer, "{name}: {ours} MiB is more than the best peer's {peer} MiB");
    }
}
