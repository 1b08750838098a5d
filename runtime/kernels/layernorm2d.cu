// Normalization of each position of an image over its channels (Liu et al. 2022). A thread for each position, so that
// neighbours read neighbours.
#include "moments.cuh"

// Element `c` of position `p` lies at `start + c * positions`. `count` positions in all samples.
HELPER unsigned first_channel(unsigned p, unsigned channels, unsigned positions) {
    return p / positions * channels * positions + p % positions;
}

KERNEL layernorm2d_forward(const float *x, float *y, const float *weight, const float *bias, float *saved_mean,
                           float *saved_rstd, unsigned count, unsigned channels, unsigned positions, float eps) {
    EACH(p, count) {
        unsigned start = first_channel(p, channels, positions);
        Sum sum = nothing(), distances = nothing(), squares = nothing();
        for (unsigned c = 0; c < channels; c++) {
            sum.add(x[start + c * positions]);
        }
        float mean = sum.value() / (float)channels;
        for (unsigned c = 0; c < channels; c++) {
            float distance = x[start + c * positions] - mean;
            distances.add(distance);
            squares.add(distance * distance);
        }
        Moments m = moments(mean, distances, squares, (float)channels, eps);
        for (unsigned c = 0; c < channels; c++) {
            unsigned i = start + c * positions;
            y[i] = line(m, weight[c], bias[c]).at(x[i]);
        }
        if (saved_mean) {
            saved_mean[p] = m.mean;
            saved_rstd[p] = m.rstd;
        }
    }
}

// The formulas of row normalization.
KERNEL layernorm2d_backward(const float *dy, const float *x, const float *weight, const float *saved_mean,
                            const float *saved_rstd, float *dx, unsigned count, unsigned channels, unsigned positions, int adds) {
    EACH(p, count) {
        unsigned start = first_channel(p, channels, positions);
        float mean = saved_mean[p], rstd = saved_rstd[p];
        Sum sums = nothing(), products = nothing();
        for (unsigned c = 0; c < channels; c++) {
            unsigned i = start + c * positions;
            float g = weight[c] * dy[i];
            sums.add(g);
            products.add(g * (x[i] - mean));
        }
        float offset = sums.value() / (float)channels, slope = products.value() / (float)channels * rstd * rstd;
        for (unsigned c = 0; c < channels; c++) {
            unsigned i = start + c * positions;
            put(dx, i, rstd * (weight[c] * dy[i] - offset - (x[i] - mean) * slope), adds);
        }
    }
}

// A block for each channel, of `count` positions.
KERNEL layernorm2d_parameters(const float *dy, const float *x, const float *saved_mean, const float *saved_rstd, float *dweight,
                              float *dbias, unsigned count, unsigned channels, unsigned positions, int dweight_adds,
                              int dbias_adds) {
    MEETING;
    Sum sums = nothing(), products = nothing();
    EACH_IN_BLOCK(p, count) {
        unsigned i = first_channel(p, channels, positions) + blockIdx.x * positions;
        sums.add(dy[i]);
        products.add(dy[i] * ((x[i] - saved_mean[p]) * saved_rstd[p]));
    }
    float sum = block_sum(sums, meeting).value(), product = block_sum(products, meeting).value();
    if (threadIdx.x == 0) {
        if (dweight) {
            put(dweight, blockIdx.x, product, dweight_adds);
        }
        if (dbias) {
            put(dbias, blockIdx.x, sum, dbias_adds);
        }
    }
}
