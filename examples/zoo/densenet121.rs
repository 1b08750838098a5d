//! DenseNet-121 for ImageNet.
//!
//! Gao Huang, Zhuang Liu, Laurens van der Maaten and Kilian Q. Weinberger, *Densely Connected Convolutional Networks*, 2016.
//! This is its variant BC: bottlenecks within the blocks, half of the channels dropped between them.

use plimsoll::network;

network! {
    /// DenseNet-121: each layer sees the outputs of all before it in its block, and adds 32 channels to them.
    #[train(batch = 32, optimizer = sgd(lr = 0.1, momentum = 0.9, weight_decay = 1e-4), loss = cross_entropy)]
    #[budget(9 GB)]
    pub struct DenseNet121(image: f32[3, 224, 224]) {
        const CLASSES = 1000;

        features: [
            conv0: conv2d(64, kernel = 7, stride = 2, padding = 3, bias = false),
            norm0: batchnorm2d,
            relu0: relu,
            pool0: maxpool2d(3, stride = 2, padding = 1),
            denseblock1: [
                denselayer1: Dense(32), denselayer2: Dense(32), denselayer3: Dense(32), denselayer4: Dense(32),
                denselayer5: Dense(32), denselayer6: Dense(32),
            ],
            transition1: Transition(128),
            denseblock2: [
                denselayer1: Dense(32), denselayer2: Dense(32), denselayer3: Dense(32), denselayer4: Dense(32),
                denselayer5: Dense(32), denselayer6: Dense(32), denselayer7: Dense(32), denselayer8: Dense(32),
                denselayer9: Dense(32), denselayer10: Dense(32), denselayer11: Dense(32), denselayer12: Dense(32),
            ],
            transition2: Transition(256),
            denseblock3: [
                denselayer1: Dense(32), denselayer2: Dense(32), denselayer3: Dense(32), denselayer4: Dense(32),
                denselayer5: Dense(32), denselayer6: Dense(32), denselayer7: Dense(32), denselayer8: Dense(32),
                denselayer9: Dense(32), denselayer10: Dense(32), denselayer11: Dense(32), denselayer12: Dense(32),
                denselayer13: Dense(32), denselayer14: Dense(32), denselayer15: Dense(32), denselayer16: Dense(32),
                denselayer17: Dense(32), denselayer18: Dense(32), denselayer19: Dense(32), denselayer20: Dense(32),
                denselayer21: Dense(32), denselayer22: Dense(32), denselayer23: Dense(32), denselayer24: Dense(32),
            ],
            transition3: Transition(512),
            denseblock4: [
                denselayer1: Dense(32), denselayer2: Dense(32), denselayer3: Dense(32), denselayer4: Dense(32),
                denselayer5: Dense(32), denselayer6: Dense(32), denselayer7: Dense(32), denselayer8: Dense(32),
                denselayer9: Dense(32), denselayer10: Dense(32), denselayer11: Dense(32), denselayer12: Dense(32),
                denselayer13: Dense(32), denselayer14: Dense(32), denselayer15: Dense(32), denselayer16: Dense(32),
            ],
            norm5: batchnorm2d,
        ],
        relu,
        adaptive_avgpool2d(1),
        flatten,
        classifier: linear(CLASSES),
    }

    block Dense(growth) {
        norm1: batchnorm2d,
        conv1: conv2d(4 * growth, kernel = 1, bias = false),
        norm2: batchnorm2d,
        conv2: conv2d(growth, kernel = 3, padding = 1, bias = false),

        fn forward(x) {
            let y = x.norm1().relu().conv1().norm2().relu().conv2();
            concat(x, y, axis = 0)
        }
    }

    block Transition(channels) {
        norm: batchnorm2d,
        relu: relu,
        conv: conv2d(channels, kernel = 1, bias = false),
        pool: avgpool2d(2),
    }
}

fn main() {
    println!("{}", DenseNet121::summary());
}
