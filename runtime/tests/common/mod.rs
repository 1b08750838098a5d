//! Random small networks for tests, and batches for them.
#![allow(dead_code)] // Each test takes what it needs.

use plimsoll_plan::graph::{Budget, Graph, GraphBuilder, Training, ValueId};
use plimsoll_plan::layers::activation::Activation;
use plimsoll_plan::layers::arithmetic::{Affine, Arithmetic};
use plimsoll_plan::layers::batchnorm::BatchNorm;
use plimsoll_plan::layers::concat::Concat;
use plimsoll_plan::layers::conv::Conv;
use plimsoll_plan::layers::conv_transpose::ConvTranspose;
use plimsoll_plan::layers::dropout::Dropout;
use plimsoll_plan::layers::groupnorm::GroupNorm;
use plimsoll_plan::layers::layernorm::{LayerNorm, Over};
use plimsoll_plan::layers::linear::Linear;
use plimsoll_plan::layers::normalize::Normalize;
use plimsoll_plan::layers::parameter::Parameter;
use plimsoll_plan::layers::permute::Permute;
use plimsoll_plan::layers::pool::{AdaptivePool, Pool, Reduction};
use plimsoll_plan::layers::scale::Scale;
use plimsoll_plan::layers::softmax::Softmax;
use plimsoll_plan::layers::upsample::Upsample;
use plimsoll_plan::layers::view::View;
use plimsoll_plan::layers::window::Window;
use plimsoll_plan::layers::{Init, Layer};
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::shape::{DType, Shape, ValueType};
use plimsoll_runtime::philox::{Purpose, Stream};
use plimsoll_runtime::{Device, Error, Slice, Trainer};
use proptest::prelude::*;

/// What a network is made of.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// One number for each layer, from which its kind and its arguments are drawn.
    pub layers: Vec<u64>,
    pub batch: u64,
    pub optimizer: usize,
    pub loss: usize,
    pub accumulate: u64,
    pub clip: bool,
    /// Whether only smooth layers are used, for finite differences.
    pub smooth: bool,
}

/// Random recipes.
pub fn recipes(smooth: bool) -> impl Strategy<Value = Recipe> {
    let layers = proptest::collection::vec(any::<u64>(), 1..16);
    (layers, 1..4u64, 0..OPTIMIZERS, 0..LOSSES, 1..3u64, any::<bool>()).prop_map(
        move |(layers, batch, optimizer, loss, accumulate, clip)| Recipe {
            layers,
            batch,
            optimizer,
            loss,
            accumulate,
            clip,
            smooth,
        },
    )
}

/// The optimizer whose plans add gradients to the momentum.
pub const PLAIN_MOMENTUM: usize = 8;

const OPTIMIZERS: usize = 9;
const LOSSES: usize = 6;

pub fn optimizer(index: usize) -> Optimizer {
    let sgd = |momentum, nesterov| Optimizer::Sgd { lr: 0.05, momentum, dampening: 0.0, weight_decay: 1e-3, nesterov };
    match index {
        0 => sgd(0.0, false),
        1 => sgd(0.9, true),
        2 => Optimizer::by_name("adam").unwrap(),
        3 => Optimizer::by_name("adamw").unwrap(),
        4 => Optimizer::by_name("rmsprop").unwrap(),
        5 => Optimizer::RmsProp { lr: 1e-3, alpha: 0.9, eps: 1e-8, weight_decay: 1e-2, momentum: 0.9, centered: true },
        6 => Optimizer::by_name("adagrad").unwrap(),
        7 => Optimizer::by_name("lion").unwrap(),
        _ => sgd(0.9, false),
    }
}

fn loss(index: usize) -> Loss {
    match index {
        0 => Loss::CrossEntropy { label_smoothing: 0.0, ignore_index: -100 },
        1 => Loss::CrossEntropy { label_smoothing: 0.1, ignore_index: 1 },
        2 => Loss::Mse,
        3 => Loss::SmoothL1 { beta: 0.5 },
        4 => Loss::BceWithLogits,
        _ => Loss::L1,
    }
}

/// Numbers drawn one after the other from one.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        let result = self.0 % n;
        self.0 = (self.0 / n) ^ (self.0 << 40);
        result
    }

    fn pair(&mut self, n: u64, least: u64) -> [u64; 2] {
        [least + self.below(n), least + self.below(n)]
    }
}

fn window(dice: &mut Dice) -> Window {
    Window { kernel: dice.pair(3, 1), stride: dice.pair(2, 1), padding: dice.pair(2, 0), dilation: dice.pair(2, 1) }
}

/// A layer of some kind for a value of a shape, and how many values it takes; the graph builder refuses it where it does
/// not fit.
fn layer(dice: &mut Dice, shape: &[u64], smooth: bool) -> (Layer, usize) {
    let channels = shape.first().copied().unwrap_or(1);
    let groups = if dice.below(2) == 0 { 1 } else { channels };
    let yes = dice.below(2) == 0;
    let layer = match dice.below(30) {
        0 | 1 => Layer::Linear(Linear { out_features: 1 + dice.below(6), bias: yes }),
        2..=5 => {
            let out_channels = groups * (1 + dice.below(3));
            let axes = shape.len().clamp(2, 3) - 1;
            let mut window = window(dice);
            if axes == 1 {
                let Window { kernel, stride, padding, dilation } = window;
                window = Window {
                    kernel: [1, kernel[1]],
                    stride: [1, stride[1]],
                    padding: [0, padding[1]],
                    dilation: [1, dilation[1]],
                };
            }
            Layer::Conv(Conv { axes, out_channels, window, groups, bias: yes })
        }
        6 => {
            let (window, out_channels) = (window(dice), groups * (1 + dice.below(2)));
            let output_padding = if window.stride == [2, 2] { dice.pair(2, 0) } else { [0, 0] };
            Layer::ConvTranspose(ConvTranspose { out_channels, window, output_padding, groups, bias: yes })
        }
        7 | 8 => {
            let window = Window { kernel: [2, 3], padding: dice.pair(2, 0), ..window(dice) };
            let (reduction, dilation) = match smooth || dice.below(2) == 0 {
                true => (Reduction::Mean { count_include_pad: yes }, [1, 1]),
                false => (Reduction::Max, window.dilation),
            };
            Layer::Pool(Pool { reduction, window: Window { dilation, ..window }, ceil_mode: dice.below(2) == 0 })
        }
        9 => Layer::AdaptivePool(AdaptivePool { max: !smooth && yes, size: dice.pair(4, 1) }),
        10 => Layer::View(View::Flatten { start_axis: 0 }),
        11 if shape.len() == 1 => Layer::View(View::Reshape { dims: vec![1, -1] }),
        11 => Layer::View(View::Identity),
        12 | 13 if !smooth => {
            let slope = [0.1, 0.0, -0.1][dice.below(3) as usize];
            let kinds = [Activation::Relu, Activation::Relu6, Activation::LeakyRelu { negative_slope: slope }];
            Layer::Activation(kinds[dice.below(3) as usize].clone())
        }
        12..=15 => {
            let gelu = Activation::Gelu { tanh: yes };
            let kinds = [gelu, Activation::Silu, Activation::Sigmoid, Activation::Tanh];
            Layer::Activation(kinds[dice.below(4) as usize].clone())
        }
        16 | 17 => Layer::BatchNorm(BatchNorm {
            axes: if shape.len() == 3 { 2 } else { 1 },
            eps: 1e-2,
            momentum: 0.1,
            affine: yes,
        }),
        18 => {
            let over = match yes {
                true => Over::LastAxes(1 + dice.below(shape.len().max(1) as u64)),
                false => Over::Channels,
            };
            let affine = over == Over::Channels || dice.below(2) == 0;
            let bias = over == Over::Channels || (affine && dice.below(2) == 0);
            Layer::LayerNorm(LayerNorm { over, eps: 1e-2, affine, bias })
        }
        19 => Layer::GroupNorm(GroupNorm { groups, eps: 1e-2, affine: yes }),
        20 => Layer::Softmax(Softmax { axis: -1 - dice.below(shape.len().max(1) as u64) as i64 }),
        21 => Layer::Dropout(Dropout { p: 0.3 }),
        22 => {
            let by = dice.below(shape.len().max(1) as u64) as usize;
            let mut axes: Vec<usize> = (0..shape.len()).collect();
            axes.rotate_left(by);
            Layer::Permute(Permute { axes })
        }
        23 => Layer::Scale(Scale { init: 0.7 }),
        24 => Layer::Affine(Affine { mul: [1.0, 0.5][dice.below(2) as usize], add: 0.25 }),
        25 => Layer::Upsample(Upsample { scale: dice.pair(2, 1) }),
        26 => Layer::Normalize(Normalize { mean: vec![0.5], std: vec![0.7] }),
        27 => return (Layer::Concat(Concat { axis: -1 - dice.below(shape.len().max(1) as u64) as i64 }), 2),
        _ => {
            let kinds = [Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul];
            return (Layer::Arithmetic(kinds[dice.below(3) as usize]), 2);
        }
    };
    (layer, 1)
}

/// The network of a recipe. Layers that do not fit what they would be applied to are left out.
pub fn network(recipe: &Recipe) -> Graph {
    let mut builder = GraphBuilder::new("Random");
    let mut values: Vec<ValueId> = vec![builder.input("image", DType::F32, &[2, 5, 6]).unwrap()];
    if recipe.layers[0].is_multiple_of(3) {
        values.insert(0, builder.input("other", DType::F32, &[4]).unwrap());
    }
    for (i, number) in recipe.layers.iter().enumerate() {
        let mut dice = Dice(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number >> 7));
        // Mostly the value before, so that networks are deep.
        let back = if dice.below(4) == 0 { dice.below(values.len() as u64) as usize } else { 0 };
        let value = values[values.len() - 1 - back];
        let shape = builder.value_type(value).shape.0.clone();
        let (layer, count) = layer(&mut dice, &shape, recipe.smooth);
        let frozen = dice.below(6) == 0;
        let mut inputs = vec![value];
        if count == 2 {
            // A learned tensor, the same value again, or any other value that has a shape to match.
            let fits = |builder: &GraphBuilder, other: ValueId| {
                let types = [builder.value_type(value).clone(), builder.value_type(other).clone()];
                layer.rule().output(&types).is_ok()
            };
            let others: Vec<ValueId> = values.iter().copied().filter(|other| fits(&builder, *other)).collect();
            let learned = Parameter { shape: Shape(shape.clone()), init: Init::Normal { mean: 0.0, std: 0.5 } };
            inputs.push(match dice.below(3) {
                0 => {
                    let member = builder.member(&format!("learned{i}"), Layer::Parameter(learned), frozen);
                    builder.call(member, &[]).unwrap()
                }
                _ if others.is_empty() => value,
                _ => others[dice.below(others.len() as u64) as usize],
            });
            if dice.below(2) == 0 {
                inputs.reverse();
            }
        }
        let member = builder.member(&format!("layer{i}"), layer, frozen);
        if let Ok(output) = builder.call(member, &inputs)
            && builder.value_type(output).elements() < 400
        {
            values.push(output);
            if dice.below(8) == 0
                && count == 1
                && let Ok(again) = builder.call(member, &[output])
            {
                values.push(again);
            }
        }
    }
    let last = *values.last().unwrap();
    let loss = loss(recipe.loss);
    let output = match recipe.layers[0] % 4 {
        // Some networks end with what they have: a convolution's classes at each position, or a view of the input.
        0 if !matches!(loss, Loss::CrossEntropy { .. }) || builder.value_type(last).shape.0[0] > 1 => last,
        _ => {
            let flat = builder.apply("", Layer::View(View::Flatten { start_axis: 0 }), &[last]).unwrap();
            let head = builder.member("head", Layer::Linear(Linear { out_features: 3, bias: true }), false);
            builder.call(head, &[flat]).unwrap()
        }
    };
    builder.finish(output, Some(Training { loss, ..training(recipe) }), None, Budget::default()).unwrap()
}

/// How a recipe's network is trained.
fn training(recipe: &Recipe) -> Training {
    Training {
        batch: recipe.batch,
        optimizer: optimizer(recipe.optimizer),
        loss: loss(recipe.loss),
        accumulate: recipe.accumulate,
        clip_grad_norm: recipe.clip.then_some(0.5),
    }
}

fn types(builder: &GraphBuilder, values: &[ValueId]) -> Vec<ValueType> {
    values.iter().map(|value| builder.value_type(*value).clone()).collect()
}

/// A network of a recipe's numbers in which channels are joined again and again: of values with the same height and width.
pub fn joined(recipe: &Recipe) -> Graph {
    let mut builder = GraphBuilder::new("Joined");
    let mut values: Vec<ValueId> = vec![builder.input("image", DType::F32, &[2, 5, 6]).unwrap()];
    let conv = |out_channels, kernel, groups| {
        let window = Window { kernel: [kernel; 2], stride: [1; 2], padding: [kernel / 2; 2], dilation: [1; 2] };
        Layer::Conv(Conv { axes: 2, out_channels, window, groups, bias: kernel == 1 })
    };
    let mut members = 0;
    let mut call = |builder: &mut GraphBuilder, layer: Layer, inputs: &[ValueId], frozen: bool| {
        members += 1;
        let member = builder.member(&format!("layer{members}"), layer, frozen);
        builder.call(member, inputs).unwrap()
    };
    let first = call(&mut builder, conv(3, 3, 1), &values, false);
    values.push(first);
    for number in &recipe.layers {
        let mut dice = Dice(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number >> 7));
        let mut any = |values: &[ValueId]| values[values.len() - 1 - dice.below(values.len().min(6) as u64) as usize];
        let (value, other, third) = (values[values.len() - 1], any(&values), any(&values));
        let channels = builder.value_type(value).shape.0[0];
        let frozen = dice.below(6) == 0;
        let layer = match dice.below(8) {
            // Some have more terms in their products than are summed at a time.
            0 => conv([1, 2, 3, 33][dice.below(4) as usize], 3, 1),
            1 => conv(1 + dice.below(4), 1, 1),
            2 => conv(channels, 3, channels),
            3 => Layer::Activation(Activation::Silu),
            4 => Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-2, momentum: 0.1, affine: frozen }),
            5 => {
                let window = Window { kernel: [3; 2], stride: [1; 2], padding: [1; 2], dilation: [1; 2] };
                Layer::Pool(Pool { reduction: Reduction::Max, window, ceil_mode: false })
            }
            _ => Layer::Concat(Concat { axis: 0 }),
        };
        let inputs = match layer {
            Layer::Concat(_) => [value, other, third][..2 + dice.below(2) as usize].to_vec(),
            _ => vec![if dice.below(3) == 0 { other } else { value }],
        };
        if layer.rule().output(&types(&builder, &inputs)).is_ok_and(|output| output.elements() < 1200) {
            values.push(call(&mut builder, layer, &inputs, frozen));
        }
    }
    let last = values[values.len() - 1];
    let beside = [conv(2, 3, 1), Layer::Activation(Activation::Silu)];
    let [a, b] = beside.map(|layer| call(&mut builder, layer, &[first], false));
    let all = builder.apply("all", Layer::Concat(Concat { axis: 0 }), &[last, a, b]).unwrap();
    let read = match recipe.layers[0] % 2 {
        0 => call(
            &mut builder,
            Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-2, momentum: 0.1, affine: true }),
            &[all],
            false,
        ),
        _ => all,
    };
    let last = call(&mut builder, conv(2, 3, 1), &[read], false);
    builder.finish(last, Some(training(recipe)), None, Budget::default()).unwrap()
}

/// A network of a recipe's numbers whose values have many channels, often clamped in place, joined, and read more than once.
pub fn wide(recipe: &Recipe) -> Graph {
    let mut builder = GraphBuilder::new("Wide");
    let mut dice = Dice(recipe.layers[0]);
    let shape = [3 + 33 * dice.below(2), 8 + dice.below(5), 8 + dice.below(9)];
    let mut values: Vec<ValueId> = vec![builder.input("image", DType::F32, &shape).unwrap()];
    for (i, number) in recipe.layers.iter().take(8).enumerate() {
        let mut dice = Dice(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number >> 7));
        let value = values[values.len() - 1];
        let shape = builder.value_type(value).shape.0.clone();
        let channels = shape[0];
        // Often what an activation was applied to, which then can't be in place.
        let other = values[values.len() - 1 - dice.below(values.len().min(3) as u64) as usize];
        let (frozen, yes, many) = (dice.below(6) == 0, dice.below(2) == 0, 32 + dice.below(40));
        let window = |kernel: u64, padding: u64| Window {
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [padding; 2],
            dilation: [1; 2],
        };
        let conv =
            |out_channels, window, groups| Layer::Conv(Conv { axes: 2, out_channels, window, groups, bias: yes });
        let (layer, inputs) = match dice.below(12) {
            0..=2 => (conv(many, window(3, dice.below(3)), 1), vec![value]),
            3 => (conv(many, window(1, 0), 1), vec![value]),
            4 => (conv(channels, window(3, 1), channels), vec![value]),
            5 => {
                let (window, output_padding) = (window(3, dice.below(3)), [0; 2]);
                let layer = ConvTranspose { out_channels: many, window, output_padding, groups: 1, bias: yes };
                (Layer::ConvTranspose(layer), vec![value])
            }
            6 => (Layer::BatchNorm(BatchNorm { axes: 2, eps: 1e-2, momentum: 0.1, affine: yes }), vec![value]),
            7 => {
                let window = Window { stride: [1 + dice.below(2); 2], ..window(3, 1) };
                (Layer::Pool(Pool { reduction: Reduction::Max, window, ceil_mode: yes }), vec![value])
            }
            8 => (Layer::Affine(Affine { mul: 0.5, add: 0.25 }), vec![value]),
            9 => (Layer::Concat(Concat { axis: 0 }), vec![value, other]),
            10 => (Layer::Arithmetic(Arithmetic::Add), vec![value, other]),
            _ => {
                let gate = Parameter { shape: Shape(vec![channels, 1, 1]), init: Init::Normal { mean: 1.0, std: 0.5 } };
                let member = builder.member(&format!("gate{i}"), Layer::Parameter(gate), frozen);
                let gate = builder.call(member, &[]).unwrap();
                (Layer::Arithmetic(Arithmetic::Mul), if yes { vec![value, gate] } else { vec![gate, value] })
            }
        };
        let types = types(&builder, &inputs);
        if layer.rule().output(&types).is_ok_and(|output| output.shape.0[0] <= 150) {
            let member = builder.member(&format!("layer{i}"), layer, frozen);
            values.push(builder.call(member, &inputs).unwrap());
            // The same weight once more.
            if dice.below(6) == 0
                && inputs.len() == 1
                && let Ok(again) = builder.call(member, &[values[values.len() - 1]])
            {
                values.push(again);
            }
            if dice.below(2) == 0 {
                let activation = [Activation::Relu, Activation::Relu6][dice.below(2) as usize].clone();
                let last = values[values.len() - 1];
                values.push(builder.apply("", Layer::Activation(activation), &[last]).unwrap());
            }
        }
    }
    let flat = builder.apply("", Layer::View(View::Flatten { start_axis: 0 }), &[values[values.len() - 1]]).unwrap();
    let head = builder.member("head", Layer::Linear(Linear { out_features: 5, bias: true }), false);
    let output = builder.call(head, &[flat]).unwrap();
    builder.finish(output, Some(training(recipe)), None, Budget::default()).unwrap()
}

/// Inputs and targets of a batch.
pub struct Batch {
    pub inputs: Vec<Vec<f32>>,
    pub classes: Vec<i32>,
    pub values: Vec<f32>,
}

impl Batch {
    /// The batch of that number for a network.
    pub fn new(graph: &Graph, samples: u64, number: u64) -> Batch {
        let normal = |index: u32, elements: u64| -> Vec<f32> {
            let stream = Stream::new(99, Purpose::Shuffle, index, number);
            (0..elements.div_ceil(4)).flat_map(|block| stream.normal(block)).take(elements as usize).collect()
        };
        let inputs = graph.inputs.iter().enumerate();
        let inputs = inputs.map(|(i, input)| normal(i as u32, samples * input.value_type.elements())).collect();
        let target = graph.target_type().unwrap();
        let values = normal(50, samples * target.elements());
        let classes = graph.value_type(graph.output).shape.0.first().copied().unwrap_or(1);
        let mut labels: Vec<i32> = values.iter().map(|x| (x.abs() * 100.0) as i32 % classes as i32).collect();
        // Not all of them may be ignored.
        labels[0] = 0;
        let values = match graph.training.as_ref().unwrap().loss {
            Loss::BceWithLogits => values.iter().map(|x| 1.0 / (1.0 + x.exp())).collect(),
            _ => values,
        };
        Batch { inputs, classes: labels, values }
    }

    pub fn slices(&self) -> Vec<Slice<'_>> {
        self.inputs.iter().map(|input| Slice::F32(input)).collect()
    }

    pub fn targets(&self, graph: &Graph) -> Slice<'_> {
        match graph.target_type().unwrap().dtype {
            DType::I32 => Slice::I32(&self.classes),
            _ => Slice::F32(&self.values),
        }
    }
}

/// What a training run gives: the losses, the outputs of evaluation after it, and the parameters in the end, all by their
/// bits.
pub fn train<D: Device>(graph: &Graph, device: D, steps: u64) -> Vec<u32> {
    train_plan(&graph.plan().unwrap(), device, steps)
}

/// As [`train`], by a plan.
pub fn train_plan<D: Device>(plan: &Plan, device: D, steps: u64) -> Vec<u32> {
    train_tensors(plan, device, steps).iter().flat_map(|(_, values)| values).map(|x| x.to_bits()).collect()
}

/// As [`train_plan`], tensor by tensor, each with a name.
pub fn train_tensors<D: Device>(plan: &Plan, device: D, steps: u64) -> Vec<(String, Vec<f32>)> {
    let graph = &plan.graph;
    let mut trainer = Trainer::from_plan(plan, device, 7).unwrap();
    let mut tensors = Vec::new();
    for step in 0..steps {
        // Some batches are smaller than planned.
        let samples = if step % 3 == 1 { plan.graph.declared_batch().div_ceil(2) } else { plan.graph.declared_batch() };
        let batch = Batch::new(graph, samples, step);
        match trainer.step(batch.slices().as_slice(), batch.targets(graph)) {
            Ok(loss) => tensors.push((format!("loss {step}"), vec![loss])),
            // Batch normalization may see a single value.
            Err(Error::OneValue { .. }) => continue,
            // A dilated window may lie on the padding alone, where a maximum is infinite.
            Err(Error::Loss { .. }) => return tensors,
            Err(error) => panic!("{error}"),
        }
        tensors.push((format!("output {step}"), trainer.predict(batch.slices().as_slice()).unwrap().to_vec()));
    }
    for parameter in &graph.parameters {
        tensors.push((parameter.path.clone(), trainer.parameter(&parameter.path).unwrap()));
    }
    tensors
}
