//! Problems with the lifetimes of training: a forward pass that keeps activations and a backward pass that frees them.

use plimsoll_plan::arena::{Buffer, Lifespan, Problem};

/// An operation of a network. Operation `i` runs at step `i` forward and at step `2n - 1 - i` backward.
struct Operation {
    inputs: Vec<usize>,
    output: u64,
    keeps_inputs: bool,
    keeps_output: bool,
    weights: u64,
    workspace: u64,
}

/// A network under construction: every operation is added with the operations whose outputs it reads.
#[derive(Default)]
struct Network {
    operations: Vec<Operation>,
}

impl Network {
    fn add(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.operations.len() - 1
    }

    fn plain(&mut self, inputs: &[usize], output: u64) -> usize {
        self.add(Operation {
            inputs: inputs.to_vec(),
            output,
            keeps_inputs: false,
            keeps_output: false,
            weights: 0,
            workspace: 0,
        })
    }

    fn conv(&mut self, input: usize, image: Image) -> usize {
        let from = self.operations[input].output;
        let weights = 4 * 9 * image.channels * image.channels;
        let workspace = (from / 3).min(1 << 20) + 100 * image.channels;
        let inputs = vec![input];
        self.add(Operation {
            inputs,
            output: image.bytes(),
            keeps_inputs: true,
            keeps_output: false,
            weights,
            workspace,
        })
    }

    fn norm(&mut self, input: usize, channels: u64) -> usize {
        let output = self.operations[input].output;
        let inputs = vec![input];
        self.add(Operation {
            inputs,
            output,
            keeps_inputs: true,
            keeps_output: false,
            weights: 8 * channels,
            workspace: 0,
        })
    }

    fn relu(&mut self, input: usize) -> usize {
        let output = self.operations[input].output;
        let inputs = vec![input];
        self.add(Operation { inputs, output, keeps_inputs: false, keeps_output: true, weights: 0, workspace: 0 })
    }

    fn conv_norm_relu(&mut self, input: usize, image: Image) -> usize {
        let conv = self.conv(input, image);
        let norm = self.norm(conv, image.channels);
        self.relu(norm)
    }

    /// The buffers of one training step.
    fn problem(&self) -> Problem {
        let count = self.operations.len();
        let backward = |operation: usize| 2 * count - 1 - operation;
        let mut buffers = Vec::new();
        let mut buffer = |lower: usize, upper: usize, size: u64| {
            if size > 0 {
                let lifespan = Lifespan::new(lower as u32, upper as u32);
                buffers.push(Buffer { lifespan, size, alignment: 256 });
            }
        };
        // The last step that reads each output, and the first that adds to its gradient.
        let mut last_read: Vec<usize> = (0..count).collect();
        let mut last_user: Vec<usize> = (0..count).collect();
        for (index, operation) in self.operations.iter().enumerate() {
            if operation.keeps_output {
                last_read[index] = last_read[index].max(backward(index));
            }
            for &input in &operation.inputs {
                let read = if operation.keeps_inputs { backward(index) } else { index };
                last_read[input] = last_read[input].max(read);
                last_user[input] = last_user[input].max(index);
            }
        }
        for (index, operation) in self.operations.iter().enumerate() {
            buffer(index, last_read[index] + 1, operation.output);
            if index > 0 {
                buffer(backward(last_user[index]), backward(index) + 1, operation.output);
            }
            buffer(backward(index), backward(index) + 1 + index % 3, operation.weights);
            buffer(index, index + 1, operation.workspace);
            buffer(backward(index), backward(index) + 1, operation.workspace * 2);
        }
        Problem { buffers, capacity: None }
    }
}

/// The shape of an activation: a batch of square images.
#[derive(Clone, Copy)]
struct Image {
    batch: u64,
    channels: u64,
    side: u64,
}

impl Image {
    fn bytes(self) -> u64 {
        4 * self.batch * self.channels * self.side * self.side
    }
}

/// Layer after layer, each with a weight, of sizes that go up and down.
pub fn chain(layers: usize) -> Problem {
    let mut network = Network::default();
    let mut last = network.plain(&[], 4 * 32 * 784);
    for layer in 0..layers {
        let width = 64 + (layer as u64 * 37) % 200;
        let inputs = vec![last];
        let (output, weights) = (4 * 32 * width, 4 * width * width);
        last = network.add(Operation {
            inputs,
            output,
            keeps_inputs: true,
            keeps_output: layer % 2 == 1,
            weights,
            workspace: if layer % 5 == 0 { 3000 } else { 0 },
        });
    }
    network.plain(&[last], 4);
    network.problem()
}

/// Four stages of residual bottleneck blocks.
pub fn resnet(blocks: [usize; 4]) -> Problem {
    let mut network = Network::default();
    let input = network.plain(&[], 4 * 8 * 3 * 224 * 224);
    let mut last = network.conv_norm_relu(input, Image { batch: 8, channels: 64, side: 112 });
    last = network.plain(&[last], 4 * 8 * 64 * 56 * 56);
    for (stage, &blocks) in blocks.iter().enumerate() {
        for block in 0..blocks {
            let narrow = Image { batch: 8, channels: 64 << stage, side: 56 >> stage };
            let wide = Image { channels: narrow.channels * 4, ..narrow };
            let first = network.conv_norm_relu(last, narrow);
            let second = network.conv_norm_relu(first, narrow);
            let conv = network.conv(second, wide);
            let third = network.norm(conv, wide.channels);
            let skip = if block == 0 {
                let conv = network.conv(last, wide);
                network.norm(conv, wide.channels)
            } else {
                last
            };
            let sum = network.plain(&[third, skip], wide.bytes());
            last = network.relu(sum);
        }
    }
    last = network.plain(&[last], 4 * 8 * 2048);
    network.plain(&[last], 4);
    network.problem()
}

/// Down and up again over `depth` levels of `convs` convolutions, with a concatenation at every level on the way up.
pub fn unet(depth: usize, convs: usize) -> Problem {
    let mut network = Network::default();
    let image = |level: usize| Image { batch: 2, channels: 32 << level, side: 256 >> level };
    let mut last = network.plain(&[], 4 * 2 * 3 * 256 * 256);
    let mut skips = Vec::new();
    for level in 0..depth {
        for _ in 0..convs {
            last = network.conv_norm_relu(last, image(level));
        }
        skips.push(last);
        last = network.plain(&[last], image(level).bytes() / 4);
    }
    for _ in 0..convs {
        last = network.conv_norm_relu(last, image(depth));
    }
    for level in (0..depth).rev() {
        let up = network.conv(last, image(level));
        last = network.plain(&[up, skips[level]], 2 * image(level).bytes());
        for _ in 0..convs {
            last = network.conv_norm_relu(last, image(level));
        }
    }
    network.plain(&[last], 4);
    network.problem()
}

/// Dense blocks: every layer reads the concatenation of all before it.
pub fn densenet(blocks: &[usize]) -> Problem {
    let mut network = Network::default();
    let input = network.plain(&[], 4 * 8 * 3 * 224 * 224);
    let mut channels = 64;
    let mut side = 56;
    let mut last = network.conv_norm_relu(input, Image { batch: 8, channels, side });
    for &layers in blocks {
        for _ in 0..layers {
            let norm = network.norm(last, channels);
            let relu = network.relu(norm);
            let narrow = network.conv_norm_relu(relu, Image { batch: 8, channels: 128, side });
            let new = network.conv(narrow, Image { batch: 8, channels: 32, side });
            channels += 32;
            last = network.plain(&[last, new], Image { batch: 8, channels, side }.bytes());
        }
        channels /= 2;
        let image = Image { batch: 8, channels, side };
        last = network.conv(last, image);
        side /= 2;
        last = network.plain(&[last], Image { side, ..image }.bytes());
    }
    network.plain(&[last], 4);
    network.problem()
}

/// Transformer blocks: attention and a feed-forward part, both with a residual branch.
pub fn transformer(layers: usize) -> Problem {
    let mut network = Network::default();
    let (tokens, width, heads) = (2 * 256, 384, 6);
    let matrix = |columns: u64| 4 * tokens * columns;
    let mut last = network.plain(&[], matrix(width));
    for _ in 0..layers {
        let linear = |network: &mut Network, input, columns: u64, weights: u64| {
            let inputs = vec![input];
            network.add(Operation {
                inputs,
                output: matrix(columns),
                keeps_inputs: true,
                keeps_output: false,
                weights,
                workspace: 0,
            })
        };
        let norm = network.norm(last, width);
        let qkv = linear(&mut network, norm, 3 * width, 12 * width * width);
        let scores = linear(&mut network, qkv, heads * 256, 0);
        let softmax = network.relu(scores);
        let mixed = network.add(Operation {
            inputs: vec![softmax, qkv],
            output: matrix(width),
            keeps_inputs: true,
            keeps_output: false,
            weights: 0,
            workspace: 5000,
        });
        let out = linear(&mut network, mixed, width, 4 * width * width);
        let middle = network.plain(&[out, last], matrix(width));
        let norm = network.norm(middle, width);
        let up = linear(&mut network, norm, 4 * width, 16 * width * width);
        let gelu = network.add(Operation {
            inputs: vec![up],
            output: matrix(4 * width),
            keeps_inputs: true,
            keeps_output: false,
            weights: 0,
            workspace: 0,
        });
        let down = linear(&mut network, gelu, width, 16 * width * width);
        last = network.plain(&[down, middle], matrix(width));
    }
    network.plain(&[last], 4);
    network.problem()
}

/// One of each, at about the size of a deep network: its name and the problem.
pub fn all() -> Vec<(&'static str, Problem)> {
    vec![
        ("chain of 750", chain(750)),
        ("chain of 1000", chain(1000)),
        ("ResNet-50", resnet([3, 4, 6, 3])),
        ("ResNet-152", resnet([3, 8, 36, 3])),
        ("ResNet of 750", resnet([8, 20, 36, 8])),
        ("U-Net, 4 levels", unet(4, 2)),
        ("U-Net, 5 levels of 20", unet(5, 20)),
        ("DenseNet-121", densenet(&[6, 12, 24, 16])),
        ("DenseNet-201", densenet(&[6, 12, 48, 32])),
        ("Transformer of 12", transformer(12)),
        ("Transformer of 62", transformer(62)),
    ]
}
