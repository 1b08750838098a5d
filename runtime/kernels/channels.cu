// What is done channel by channel: biases, learned factors, and the normalization of the input.
//
// Element `i` of a tensor `[..., channels, positions]` belongs to channel `i / positions % channels`.
#include "common.cuh"

// `y += bias`.
KERNEL add_bias(float *y, const float *bias, unsigned count, unsigned channels, unsigned positions) {
    EACH(i, count) {
        y[i] += bias[i / positions % channels];
    }
}

// `dbias = sum dy`, or `dw = sum dy x` where there is an `x`: a block for each channel, of `count` elements.
KERNEL channel_sums(const float *dy, const float *x, float *sums, unsigned count, unsigned channels, unsigned positions, int adds) {
    MEETING;
    unsigned channel = blockIdx.x;
    Sum sum = nothing();
    EACH_IN_BLOCK(e, count) {
        unsigned i = (e / positions * channels + channel) * positions + e % positions;
        sum.add(x ? dy[i] * x[i] : dy[i]);
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        put(sums, channel, sum.value(), adds);
    }
}

// `y = w x`, and `dx = w dy`.
KERNEL scale(const float *x, const float *weight, float *y, unsigned count, unsigned channels, unsigned positions, int adds) {
    EACH(i, count) {
        put(y, i, weight[i / positions % channels] * x[i], adds);
    }
}

// `(x - mean) / std` of the channels `first`, `first + apart`, and so on, of which there are `count` elements.
HELPER unsigned place(unsigned e, unsigned channels, unsigned positions, unsigned first, unsigned apart) {
    unsigned plane = e / positions, of_sample = (channels - first + apart - 1) / apart;
    unsigned channel = first + plane % of_sample * apart;
    return (plane / of_sample * channels + channel) * positions + e % positions;
}

KERNEL normalize_forward(const float *x, float *y, unsigned count, unsigned channels, unsigned positions, unsigned first,
                         unsigned apart, float mean, float std) {
    EACH(e, count) {
        unsigned i = place(e, channels, positions, first, apart);
        y[i] = (x[i] - mean) / std;
    }
}

// The same for bytes, scaled to [0, 1].
KERNEL normalize_bytes_forward(const unsigned char *x, float *y, unsigned count, unsigned channels, unsigned positions,
                               unsigned first, unsigned apart, float mean, float std) {
    EACH(e, count) {
        unsigned i = place(e, channels, positions, first, apart);
        y[i] = ((float)x[i] / 255.0f - mean) / std;
    }
}

KERNEL normalize_backward(const float *dy, float *dx, unsigned count, unsigned channels, unsigned positions, unsigned first,
                          unsigned apart, float std, int adds) {
    EACH(e, count) {
        unsigned i = place(e, channels, positions, first, apart);
        put(dx, i, dy[i] / std, adds);
    }
}
