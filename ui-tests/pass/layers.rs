// Every layer once, with its arguments.

use plimsoll::network;

network! {
    #[train(batch = 2, optimizer = adam, loss = cross_entropy)]
    struct Image(image: u8[4, 32, 32]) {
        normalize(mean = 0.5, std = [0.25]),
        conv2d(8, kernel = (3, 5), stride = (1, 1), padding = (1, 2), dilation = 1, groups = 2, bias = false),
        batchnorm2d(eps = 1e-5, momentum = 0.1, affine = true),
        relu,
        maxpool2d(3, stride = 2, padding = 1, dilation = 1, ceil_mode = true),
        conv_transpose2d(6, kernel = 2, stride = 2, output_padding = 1),
        groupnorm(3, eps = 1e-6, affine = true),
        relu6,
        avgpool2d(2, count_include_pad = false),
        layernorm2d(eps = 1e-6),
        leaky_relu(negative_slope = 0.2),
        upsample(scale_factor = 2, mode = nearest),
        gelu(approximate = tanh),
        adaptive_maxpool2d((4, 6)),
        silu,
        adaptive_avgpool2d(2),
        scale(init = 0.5),
        permute([1, 2, 0]),
        identity,
        flatten(start_axis = 1),
        reshape([6, -1]),
        conv1d(5, kernel = 3, padding = 1),
        batchnorm1d,
        layernorm(eps = 1e-5, axes = 2, elementwise_affine = true, bias = false),
        sigmoid,
        flatten,
        dropout(p = 0.2),
        linear(10, bias = true),
        tanh,
        softmax(axis = -1),
    }
}

network! {
    struct Rest(x: f32[2, 3]) {
        shift: parameter([3], init = 0.5, std = 0.1),

        fn forward(x) {
            concat(x + shift, x, axis = 1).concat(x.reshape([2, 3]), axis = -1)
        }
    }
}

fn main() {
    assert_eq!(Image::LAYERS.len(), 31);
    assert_eq!(*Image::LAYERS[2].shape, [8, 32, 32]);
    // Eight kernels of 3 x 5 over two of the four channels.
    assert_eq!(Image::LAYERS[2].parameters, 8 * 2 * 3 * 5);
    assert_eq!(*Image::LAYERS[5].shape, [8, 17, 17]);
    assert_eq!(*Image::LAYERS[6].shape, [6, 35, 35]);
    assert_eq!(*Image::LAYERS[14].shape, [6, 4, 6]);
    assert_eq!(*Image::LAYERS[30].shape, [10]);
    assert_eq!(*Rest::LAYERS.last().unwrap().shape, [2, 9]);
}
