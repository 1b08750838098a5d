// Pooling: maxima and means over windows, sliding or adaptive; and upsampling, its opposite.
//
// A maximum leaves for backward its place within its window, the first where several are equal, as PyTorch has it. Backward
// asks for each pixel which windows it lies in, so that no two threads add to one number.
#include "common.cuh"

// From input planes to output planes; height first. The runtime refuses extents whose product passes 32 bits.
struct Windows {
    unsigned input[2];
    unsigned output[2];
    // A kernel of no taps stands for adaptive windows.
    unsigned kernel[2];
    unsigned stride[2];
    unsigned padding[2];
    unsigned dilation[2];
    // Whether padding counts in a mean.
    unsigned count_include_pad;
};

// The channels of the input, or of a part of one: `own` of them, which are those from `first` on of the `all` of the output.
struct Channels {
    unsigned all;
    unsigned own;
    unsigned first;
};

// The plane of the output that belongs to a plane of the input.
HELPER unsigned output_plane(const Channels &c, unsigned plane) {
    return plane / c.own * c.all + c.first + plane % c.own;
}

// The taps of one window along one axis: those from `first` to below `end` lie on the input.
struct Span {
    int start, first, end, taps, dilation, counted;

    __forceinline__ __device__ int at(int tap) const {
        return start + tap * dilation;
    }
};

template <int axis> HELPER Span span(const Windows &w, unsigned output) {
    int extent = w.input[axis];
    if (w.kernel[axis] == 0) {
        unsigned outputs = w.output[axis];
        int start = output * w.input[axis] / outputs;
        int end = ((output + 1) * w.input[axis] + outputs - 1) / outputs;
        return Span{start, 0, end - start, end - start, 1, end - start};
    }
    int taps = w.kernel[axis], dilation = w.dilation[axis], padding = w.padding[axis];
    int start = (int)(output * w.stride[axis]) - padding;
    int first = start < 0 ? (dilation - 1 - start) / dilation : 0;
    first = first < taps ? first : taps;
    int end = extent > start ? (extent - start + dilation - 1) / dilation : 0;
    end = end < taps ? end : taps;
    end = end > first ? end : first;
    // Padding counts, but not what rounding up (`ceil_mode`) adds beyond it.
    int padded = (start + taps < extent + padding ? start + taps : extent + padding) - start;
    int counted = w.count_include_pad ? (padded > 0 ? padded : 0) : end - first;
    return Span{start, first, end, taps, dilation, counted};
}

HELPER float counted(const Span &rows, const Span &columns) {
    int count = rows.counted * columns.counted;
    return (float)(count > 1 ? count : 1);
}

// The windows of an adaptive pool that may have a pixel in them; or the windows of a sliding one, one for each tap.
// `candidate` number `k` of the pixel is `window`, if that is one at all.
struct Candidates {
    int count, first;
};

template <int axis> HELPER Candidates candidates(const Windows &w, unsigned pixel) {
    if (w.kernel[axis] == 0) {
        unsigned inputs = w.input[axis], outputs = w.output[axis];
        int first = pixel * outputs / inputs;
        int last = (int)(((pixel + 1) * outputs + inputs - 1) / inputs) - 1;
        return Candidates{last - first + 1, first};
    }
    return Candidates{(int)w.kernel[axis], 0};
}

// The window that has the pixel as its tap `k`, or, of an adaptive pool, the candidate `k`; -1 if there is none.
template <int axis> HELPER int window(const Windows &w, Candidates c, int pixel, int k, int *tap) {
    if (w.kernel[axis] == 0) {
        int output = c.first + k;
        *tap = pixel - span<axis>(w, output).start;
        return output;
    }
    *tap = k;
    int distance = pixel + (int)w.padding[axis] - k * (int)w.dilation[axis];
    int stride = w.stride[axis];
    if (distance < 0 || distance % stride != 0) {
        return -1;
    }
    int output = distance / stride;
    return output < (int)w.output[axis] ? output : -1;
}

// `index_bytes` is 1 or 4, or 0 where no places are kept. `count` outputs.
KERNEL max_pool_forward(const float *x, float *y, void *index, unsigned index_bytes, unsigned count, const Channels c,
                        const Windows w) {
    EACH(i, count) {
        unsigned column = i % w.output[1], row = i / w.output[1] % w.output[0], plane = i / w.output[1] / w.output[0];
        Span rows = span<0>(w, row), columns = span<1>(w, column);
        const float *input = x + (size_t)plane * w.input[0] * w.input[1];
        float largest = -INFINITE;
        int place = rows.first * columns.taps + columns.first;
        for (int ky = rows.first; ky < rows.end; ky++) {
            for (int kx = columns.first; kx < columns.end; kx++) {
                float v = input[rows.at(ky) * (int)w.input[1] + columns.at(kx)];
                if (v > largest || v != v) {
                    largest = v;
                    place = ky * columns.taps + kx;
                }
            }
        }
        unsigned at = (output_plane(c, plane) * w.output[0] + row) * w.output[1] + column;
        y[at] = largest;
        if (index_bytes == 1) {
            ((unsigned char *)index)[at] = (unsigned char)place;
        } else if (index_bytes == 4) {
            ((int *)index)[at] = place;
        }
    }
}

// `count` pixels.
KERNEL max_pool_backward(const float *dy, const void *index, float *dx, unsigned index_bytes, unsigned count, int adds,
                         const Channels c, const Windows w) {
    EACH(i, count) {
        int column = i % w.input[1], row = i / w.input[1] % w.input[0];
        unsigned plane = output_plane(c, i / w.input[1] / w.input[0]);
        Candidates rows = candidates<0>(w, row), columns = candidates<1>(w, column);
        float sum = 0.0f;
        for (int j = 0; j < rows.count; j++) {
            int ky, kx;
            int y = window<0>(w, rows, row, j, &ky);
            if (y < 0) {
                continue;
            }
            for (int k = 0; k < columns.count; k++) {
                int x = window<1>(w, columns, column, k, &kx);
                if (x < 0) {
                    continue;
                }
                unsigned output = (plane * w.output[0] + y) * w.output[1] + x;
                int place = index_bytes == 1 ? (int)((const unsigned char *)index)[output] : ((const int *)index)[output];
                int taps = w.kernel[1] == 0 ? span<1>(w, x).taps : (int)w.kernel[1];
                sum += place == ky * taps + kx ? dy[output] : 0.0f;
            }
        }
        put(dx, i, sum, adds);
    }
}

KERNEL mean_pool_forward(const float *x, float *y, unsigned count, const Channels c, const Windows w) {
    EACH(i, count) {
        unsigned column = i % w.output[1], row = i / w.output[1] % w.output[0], plane = i / w.output[1] / w.output[0];
        Span rows = span<0>(w, row), columns = span<1>(w, column);
        const float *input = x + (size_t)plane * w.input[0] * w.input[1];
        Sum sum = nothing();
        for (int ky = rows.first; ky < rows.end; ky++) {
            for (int kx = columns.first; kx < columns.end; kx++) {
                sum.add(input[rows.at(ky) * (int)w.input[1] + columns.at(kx)]);
            }
        }
        y[(output_plane(c, plane) * w.output[0] + row) * w.output[1] + column] = sum.value() / counted(rows, columns);
    }
}

KERNEL mean_pool_backward(const float *dy, float *dx, unsigned count, int adds, const Channels c, const Windows w) {
    EACH(i, count) {
        int column = i % w.input[1], row = i / w.input[1] % w.input[0];
        unsigned plane = output_plane(c, i / w.input[1] / w.input[0]);
        Candidates rows = candidates<0>(w, row), columns = candidates<1>(w, column);
        Sum sum = nothing();
        for (int j = 0; j < rows.count; j++) {
            int tap;
            int y = window<0>(w, rows, row, j, &tap);
            if (y < 0) {
                continue;
            }
            Span height = span<0>(w, y);
            for (int k = 0; k < columns.count; k++) {
                int x = window<1>(w, columns, column, k, &tap);
                if (x < 0) {
                    continue;
                }
                sum.add(dy[(plane * w.output[0] + y) * w.output[1] + x] / counted(height, span<1>(w, x)));
            }
        }
        put(dx, i, sum.value(), adds);
    }
}

// Each element `vertical` times `horizontal` times; `width` is that of the output.
KERNEL upsample_forward(const float *x, float *y, unsigned count, unsigned width, unsigned vertical, unsigned horizontal) {
    EACH(i, count) {
        // Planes need no mention: their rows follow one another, and the factor divides the height.
        unsigned row = i / width, column = i % width;
        y[i] = x[row / vertical * (width / horizontal) + column / horizontal];
    }
}

// The sum over the copies; `width` is that of the input.
KERNEL upsample_backward(const float *dy, float *dx, unsigned count, unsigned width, unsigned vertical, unsigned horizontal,
                         int adds) {
    EACH(i, count) {
        unsigned row = i / width, column = i % width;
        Sum sum = nothing();
        for (unsigned y = 0; y < vertical; y++) {
            for (unsigned x = 0; x < horizontal; x++) {
                sum.add(dy[(row * vertical + y) * (width * horizontal) + column * horizontal + x]);
            }
        }
        put(dx, i, sum.value(), adds);
    }
}
