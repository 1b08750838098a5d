// Normalization of each channel over the batch and all positions (Ioffe & Szegedy 2015). A block for each channel.
//
// The input may be a part of one: it has `own` channels, which are those from `first` on of the `channels` of the output.
#include "moments.cuh"

// Where element `e` of a channel lies.
HELPER unsigned place(unsigned e, unsigned channel, unsigned channels, unsigned positions) {
    return (e / positions * channels + channel) * positions + e % positions;
}

// The channel of element `i` of the input, and where the element lies in the output.
HELPER unsigned channel_of(unsigned i, unsigned own, unsigned first, unsigned positions) {
    return first + i / positions % own;
}

HELPER unsigned place_of(unsigned i, unsigned channel, unsigned channels, unsigned own, unsigned positions) {
    return (i / positions / own * channels + channel) * positions + i % positions;
}

// The line of a channel by its statistics as they are saved, so that what is made of them can be made again.
HELPER Line saved_line(float mean, float rstd, const float *weight, const float *bias, unsigned channel) {
    return line(Moments{mean, 0.0f, 0.0f, rstd}, weight ? weight[channel] : 1.0f, bias ? bias[channel] : 0.0f);
}

// By the statistics of the batch, towards which the running ones move, if they are there. `count` elements a channel.
KERNEL batchnorm_train(const float *x, float *y, const float *weight, const float *bias, float *running_mean,
                       float *running_var, float *saved_mean, float *saved_rstd, unsigned count, unsigned channels,
                       unsigned own, unsigned first, unsigned positions, float eps, float momentum) {
    MEETING;
    unsigned channel = first + blockIdx.x;
    Sum sum = nothing(), distances = nothing(), squares = nothing();
    EACH_IN_BLOCK(e, count) {
        sum.add(x[place(e, blockIdx.x, own, positions)]);
    }
    float mean = block_sum(sum, meeting).value() / (float)count;
    EACH_IN_BLOCK(e, count) {
        float distance = x[place(e, blockIdx.x, own, positions)] - mean;
        distances.add(distance);
        squares.add(distance * distance);
    }
    distances = block_sum(distances, meeting);
    squares = block_sum(squares, meeting);
    Moments m = moments(mean, distances, squares, (float)count, eps);
    Line l = saved_line(m.mean, m.rstd, weight, bias, channel);
    EACH_IN_BLOCK(e, count) {
        y[place(e, channel, channels, positions)] = l.at(x[place(e, blockIdx.x, own, positions)]);
    }
    if (threadIdx.x == 0 && running_mean) {
        // The running variance is the unbiased one, as PyTorch's. One value alone has no variance.
        float unbiased = count > 1 ? m.variance * ((float)count / (float)(count - 1)) : m.variance;
        running_mean[channel] = running_mean[channel] * (1.0f - momentum) + m.mean * momentum;
        running_var[channel] = running_var[channel] * (1.0f - momentum) + unbiased * momentum;
    }
    if (threadIdx.x == 0 && saved_mean) {
        saved_mean[channel] = m.mean;
        saved_rstd[channel] = m.rstd;
    }
}

// The outputs once more, by the statistics that were saved the first time.
KERNEL batchnorm_again(const float *x, float *y, const float *weight, const float *bias, const float *saved_mean,
                       const float *saved_rstd, unsigned count, unsigned channels, unsigned own, unsigned first,
                       unsigned positions) {
    EACH(i, count) {
        unsigned channel = channel_of(i, own, first, positions), at = place_of(i, channel, channels, own, positions);
        y[at] = saved_line(saved_mean[channel], saved_rstd[channel], weight, bias, channel).at(x[i]);
    }
}

// By the running statistics.
KERNEL batchnorm_infer(const float *x, float *y, const float *weight, const float *bias, const float *running_mean,
                       const float *running_var, unsigned count, unsigned channels, unsigned own, unsigned first,
                       unsigned positions, float eps) {
    EACH(i, count) {
        unsigned channel = channel_of(i, own, first, positions), at = place_of(i, channel, channels, own, positions);
        float rstd = 1.0f / sqrtf(running_var[channel] + eps);
        y[at] = saved_line(running_mean[channel], rstd, weight, bias, channel).at(x[i]);
    }
}

// With `z = (x - mean) rstd` and means over the channel: `dw = sum dy z`, `db = sum dy`,
// `dx = w rstd (dy - mean(dy) - z mean(dy z))`.
KERNEL batchnorm_backward(const float *dy, const float *x, const float *weight, const float *saved_mean, const float *saved_rstd,
                          float *dx, float *dweight, float *dbias, unsigned count, unsigned channels, unsigned own,
                          unsigned first, unsigned positions, int dx_adds, int dweight_adds, int dbias_adds) {
    MEETING;
    unsigned channel = first + blockIdx.x;
    float mean = saved_mean[channel], rstd = saved_rstd[channel];
    Sum sums = nothing(), products = nothing();
    EACH_IN_BLOCK(e, count) {
        float gradient = dy[place(e, channel, channels, positions)];
        sums.add(gradient);
        products.add(gradient * (x[place(e, blockIdx.x, own, positions)] - mean));
    }
    float sum = block_sum(sums, meeting).value();
    float product = block_sum(products, meeting).value() * rstd;
    if (threadIdx.x == 0) {
        if (dweight) {
            put(dweight, channel, product, dweight_adds);
        }
        if (dbias) {
            put(dbias, channel, sum, dbias_adds);
        }
    }
    if (dx) {
        float factor = (weight ? weight[channel] : 1.0f) * rstd;
        float offset = sum / (float)count, slope = product / (float)count * rstd;
        EACH_IN_BLOCK(e, count) {
            unsigned i = place(e, blockIdx.x, own, positions);
            float gradient = dy[place(e, channel, channels, positions)];
            put(dx, i, factor * (gradient - offset - (x[i] - mean) * slope), dx_adds);
        }
    }
}
