// Normalization of rows: of each sample over its last axes (Ba et al. 2016), and of groups of channels (Wu & He 2018).
//
// Element `i` of the tensor belongs to row `i / size`, and has the factor and offset number `i / positions % channels`: in a
// layer normalization, one position has as many "channels" as the row is long.
#include "moments.cuh"

// A block for each row.
KERNEL rownorm_forward(const float *x, float *y, const float *weight, const float *bias, float *saved_mean, float *saved_rstd,
                       unsigned size, unsigned channels, unsigned positions, float eps) {
    MEETING;
    unsigned start = blockIdx.x * size;
    Sum sum = nothing(), distances = nothing(), squares = nothing();
    EACH_IN_BLOCK(e, size) {
        sum.add(x[start + e]);
    }
    float mean = block_sum(sum, meeting).value() / (float)size;
    EACH_IN_BLOCK(e, size) {
        float distance = x[start + e] - mean;
        distances.add(distance);
        squares.add(distance * distance);
    }
    distances = block_sum(distances, meeting);
    squares = block_sum(squares, meeting);
    Moments m = moments(mean, distances, squares, (float)size, eps);
    EACH_IN_BLOCK(e, size) {
        unsigned i = start + e, channel = i / positions % channels;
        y[i] = line(m, weight ? weight[channel] : 1.0f, bias ? bias[channel] : 0.0f).at(x[i]);
    }
    if (threadIdx.x == 0 && saved_mean) {
        saved_mean[blockIdx.x] = m.mean;
        saved_rstd[blockIdx.x] = m.rstd;
    }
}

// With `z = (x - mean) rstd`, `g = w dy`, and means over the row: `dx = rstd (g - mean(g) - z mean(g z))`.
KERNEL rownorm_backward(const float *dy, const float *x, const float *weight, const float *saved_mean, const float *saved_rstd,
                        float *dx, unsigned size, unsigned channels, unsigned positions, int adds) {
    MEETING;
    unsigned start = blockIdx.x * size;
    float mean = saved_mean[blockIdx.x], rstd = saved_rstd[blockIdx.x];
    Sum sums = nothing(), products = nothing();
    EACH_IN_BLOCK(e, size) {
        unsigned i = start + e;
        float g = (weight ? weight[i / positions % channels] : 1.0f) * dy[i];
        sums.add(g);
        products.add(g * (x[i] - mean));
    }
    float offset = block_sum(sums, meeting).value() / (float)size;
    float slope = block_sum(products, meeting).value() / (float)size * rstd * rstd;
    EACH_IN_BLOCK(e, size) {
        unsigned i = start + e;
        float g = (weight ? weight[i / positions % channels] : 1.0f) * dy[i];
        put(dx, i, rstd * (g - offset - (x[i] - mean) * slope), adds);
    }
}

// `dw = sum dy z`, `db = sum dy`: a block for each factor, of `count` elements.
KERNEL rownorm_parameters(const float *dy, const float *x, const float *saved_mean, const float *saved_rstd, float *dweight,
                          float *dbias, unsigned count, unsigned size, unsigned channels, unsigned positions,
                          int dweight_adds, int dbias_adds) {
    MEETING;
    Sum sums = nothing(), products = nothing();
    EACH_IN_BLOCK(e, count) {
        unsigned i = (e / positions * channels + blockIdx.x) * positions + e % positions;
        sums.add(dy[i]);
        products.add(dy[i] * ((x[i] - saved_mean[i / size]) * saved_rstd[i / size]));
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
