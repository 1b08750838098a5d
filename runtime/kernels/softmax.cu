// Exponentials over their sum along an axis. The largest element is subtracted first, so that no exponential overflows.
#include "common.cuh"

// A block for each line of `extent` neighbouring elements.
KERNEL softmax_forward(const float *x, float *y, unsigned extent) {
    MEETING;
    unsigned start = blockIdx.x * extent;
    float largest = -INFINITE;
    EACH_IN_BLOCK(e, extent) {
        float v = x[start + e];
        largest = v > largest || v != v ? v : largest;
    }
    largest = block_max(largest, meeting);
    Sum sum = nothing();
    EACH_IN_BLOCK(e, extent) {
        float v = expf(x[start + e] - largest);
        y[start + e] = v;
        sum.add(v);
    }
    float total = block_sum(sum, meeting).value();
    EACH_IN_BLOCK(e, extent) {
        y[start + e] /= total;
    }
}

// `dx = y (dy - sum dy y)`.
KERNEL softmax_backward(const float *dy, const float *y, float *dx, unsigned extent, int adds) {
    MEETING;
    unsigned start = blockIdx.x * extent;
    Sum sum = nothing();
    EACH_IN_BLOCK(e, extent) {
        sum.add(dy[start + e] * y[start + e]);
    }
    float product = block_sum(sum, meeting).value();
    EACH_IN_BLOCK(e, extent) {
        unsigned i = start + e;
        put(dx, i, y[i] * (dy[i] - product), adds);
    }
}

// Lines whose elements lie `inner` apart: a thread for each, of `count`, so that neighbours read neighbours.
KERNEL softmax_strided_forward(const float *x, float *y, unsigned count, unsigned extent, unsigned inner) {
    EACH(line, count) {
        unsigned start = line / inner * extent * inner + line % inner;
        float largest = -INFINITE;
        for (unsigned e = 0; e < extent; e++) {
            float v = x[start + e * inner];
            largest = v > largest || v != v ? v : largest;
        }
        Sum sum = nothing();
        for (unsigned e = 0; e < extent; e++) {
            float v = expf(x[start + e * inner] - largest);
            y[start + e * inner] = v;
            sum.add(v);
        }
        float total = sum.value();
        for (unsigned e = 0; e < extent; e++) {
            y[start + e * inner] /= total;
        }
    }
}

KERNEL softmax_strided_backward(const float *dy, const float *y, float *dx, unsigned count, unsigned extent, unsigned inner,
                                int adds) {
    EACH(line, count) {
        unsigned start = line / inner * extent * inner + line % inner;
        Sum sum = nothing();
        for (unsigned e = 0; e < extent; e++) {
            sum.add(dy[start + e * inner] * y[start + e * inner]);
        }
        float product = sum.value();
        for (unsigned e = 0; e < extent; e++) {
            unsigned i = start + e * inner;
            put(dx, i, y[i] * (dy[i] - product), adds);
        }
    }
}
