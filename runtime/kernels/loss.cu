// The loss, and its gradient with respect to the network's output, which may take the output's place.
//
// The loss itself is one block's work: the plan has no memory in which several could meet.
#include "common.cuh"

// The derivative of |d|, which is 0 at 0 as in PyTorch.
HELPER float sign(float d) {
    return d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d;
}

HELPER float smooth_l1_of(float d, float beta) {
    return fabsf(d) < beta ? 0.5f * d * d / beta : fabsf(d) - 0.5f * beta;
}

// `log(1 + exp(-|x|))` can't overflow; the sigmoid likewise by the sign of x.
HELPER float bce(float x, float t) {
    return (x < 0.0f ? 0.0f : x) - x * t + log1pf(expf(-fabsf(x)));
}

HELPER float bce_derivative(float x, float t) {
    float e = expf(-fabsf(x));
    return (x >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e)) - t;
}

// A loss of single elements: its value and its derivative, for a prediction `x` and a target `t`.
#define LOSS(name, term, derivative)                                                                              \
    KERNEL name##_loss(const float *output, const float *target, float *loss, unsigned count, float beta) {       \
        MEETING;                                                                                                  \
        Sum sum = nothing();                                                                                      \
        EACH_IN_BLOCK(i, count) {                                                                                 \
            float x = output[i], t = target[i];                                                                   \
            sum.add(term);                                                                                        \
        }                                                                                                         \
        sum = block_sum(sum, meeting);                                                                            \
        if (threadIdx.x == 0) {                                                                                   \
            *loss = sum.value() / (float)count;                                                                   \
        }                                                                                                         \
    }                                                                                                             \
    KERNEL name##_gradient(const float *output, const float *target, float *gradient, unsigned count, float beta, \
                           float factor) {                                                                        \
        EACH(i, count) {                                                                                          \
            float x = output[i], t = target[i];                                                                   \
            gradient[i] = (derivative) * factor;                                                                  \
        }                                                                                                         \
    }

LOSS(mse, (x - t) * (x - t), 2.0f * (x - t))
LOSS(l1, fabsf(x - t), sign(x - t))
LOSS(smooth_l1, smooth_l1_of(x - t, beta), fabsf(x - t) < beta ? (x - t) / beta : sign(x - t))
LOSS(bce_with_logits, bce(x, t), bce_derivative(x, t))

// How many targets count, in every thread of the block.
HELPER float counted(const int *targets, unsigned count, int ignore_index, float *meeting) {
    Sum sum = nothing();
    EACH_IN_BLOCK(i, count) {
        sum.add(targets[i] == ignore_index ? 0.0f : 1.0f);
    }
    return block_sum(sum, meeting).value();
}

// The logits of one position, which lie `positions` apart, as `lanes` threads see them: 1, or a whole warp.
struct Logits {
    float largest, sum;
};

HELPER Logits logits(const float *x, unsigned start, unsigned classes, unsigned positions, unsigned lane, unsigned lanes) {
    float largest = -INFINITE;
    for (unsigned c = lane; c < classes; c += lanes) {
        float v = x[start + c * positions];
        // A NaN must reach the loss, where it is reported.
        largest = v > largest || v != v ? v : largest;
    }
    largest = lanes == 1 ? largest : warp_max(largest);
    Sum sum = nothing();
    for (unsigned c = lane; c < classes; c += lanes) {
        sum.add(expf(x[start + c * positions] - largest));
    }
    sum = lanes == 1 ? sum : warp_sum(sum);
    return Logits{largest, sum.value()};
}

// Negative logarithm of the softmax at the target class, whose targets are smoothed: a share of each lies evenly on all
// classes. `count` positions in all samples.
KERNEL cross_entropy_loss(const float *output, const int *targets, float *loss, unsigned count, unsigned classes,
                          unsigned positions, unsigned lanes, float smoothing, int ignore_index) {
    MEETING;
    float targets_counted = counted(targets, count, ignore_index, meeting);
    unsigned lane = threadIdx.x % lanes;
    Sum sum = nothing();
    for (unsigned p = threadIdx.x / lanes; p < count; p += blockDim.x / lanes) {
        int target = targets[p];
        if (target == ignore_index) {
            continue;
        }
        unsigned start = p / positions * classes * positions + p % positions;
        Logits l = logits(output, start, classes, positions, lane, lanes);
        float below = l.largest - output[start + (unsigned)target * positions];
        float value = below + logf(l.sum);
        if (smoothing != 0.0f) {
            Sum distances = nothing();
            for (unsigned c = lane; c < classes; c += lanes) {
                distances.add(l.largest - output[start + c * positions]);
            }
            distances = lanes == 1 ? distances : warp_sum(distances);
            float even = distances.value() / (float)classes + logf(l.sum);
            value = (1.0f - smoothing) * value + smoothing * even;
        }
        sum.add(lane == 0 ? value : 0.0f);
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        *loss = sum.value() / targets_counted;
    }
}

// Softmax less the target distribution, times `share` of the mean.
KERNEL cross_entropy_gradient(const float *output, const int *targets, float *gradient, unsigned count, unsigned classes,
                              unsigned positions, unsigned lanes, float smoothing, float share, int ignore_index) {
    MEETING;
    float factor = share / counted(targets, count, ignore_index, meeting);
    float even = smoothing / (float)classes * factor, at_target = (1.0f - smoothing) * factor;
    unsigned lane = threadIdx.x % lanes, apart = gridDim.x * (blockDim.x / lanes);
    for (unsigned p = blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes; p < count; p += apart) {
        unsigned start = p / positions * classes * positions + p % positions;
        int target = targets[p];
        bool counts = target != ignore_index;
        Logits l = counts ? logits(output, start, classes, positions, lane, lanes) : Logits{0.0f, 1.0f};
        for (unsigned c = lane; c < classes; c += lanes) {
            unsigned i = start + c * positions;
            float softmax = expf(output[i] - l.largest) * (factor / l.sum);
            gradient[i] = counts ? softmax - even - (c == (unsigned)target ? at_target : 0.0f) : 0.0f;
        }
    }
}

// Of each sample, what the loss needs of its logits, slice by slice (Milakov & Gimelshein 2018, "Online normalizer calculation
// for softmax"): maximum, sum of exponentials, sum, and the target's logit. A warp for each sample.
KERNEL sliced_statistics(const float *slice, const int *targets, float *statistics, unsigned samples, unsigned first,
                         unsigned width) {
    unsigned lane = threadIdx.x % 32;
    for (unsigned s = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; s < samples; s += gridDim.x * (blockDim.x / 32)) {
        const float *x = slice + (size_t)s * width;
        float *of_sample = statistics + 4 * s;
        float before = first == 0 ? -INFINITE : of_sample[0], sum_before = first == 0 ? 0.0f : of_sample[1];
        float total_before = first == 0 ? 0.0f : of_sample[2], logit = first == 0 ? 0.0f : of_sample[3];
        float largest = before;
        Sum total = nothing();
        for (unsigned c = lane; c < width; c += 32) {
            float v = x[c];
            largest = v > largest || v != v ? v : largest;
            total.add(v);
        }
        largest = warp_max(largest);
        Sum sum = nothing();
        if (largest != -INFINITE) {
            for (unsigned c = lane; c < width; c += 32) {
                sum.add(expf(x[c] - largest));
            }
            sum_before *= expf(before - largest);
        }
        sum = warp_sum(sum);
        total = warp_sum(total);
        if (lane == 0) {
            unsigned at = (unsigned)targets[s] - first;
            of_sample[0] = largest;
            of_sample[1] = sum_before + sum.value();
            of_sample[2] = total_before + total.value();
            of_sample[3] = targets[s] >= 0 && (unsigned)targets[s] >= first && at < width ? x[at] : logit;
        }
        __syncwarp();
    }
}

KERNEL sliced_loss(const float *statistics, const int *targets, float *loss, unsigned samples, unsigned classes, float smoothing,
                   int ignore_index) {
    MEETING;
    float targets_counted = counted(targets, samples, ignore_index, meeting);
    Sum sum = nothing();
    EACH_IN_BLOCK(s, samples) {
        const float *of_sample = statistics + 4 * s;
        float log_sum = logf(of_sample[1]), largest = of_sample[0];
        float value = (largest - of_sample[3]) + log_sum;
        float even = (largest - of_sample[2] / (float)classes) + log_sum;
        value = smoothing == 0.0f ? value : (1.0f - smoothing) * value + smoothing * even;
        sum.add(targets[s] == ignore_index ? 0.0f : value);
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        *loss = sum.value() / targets_counted;
    }
}

// Puts the gradient of a slice of the logits in its place.
KERNEL sliced_gradient(float *slice, const int *targets, const float *statistics, unsigned samples, unsigned first, unsigned width,
                       unsigned classes, float smoothing, float share, int ignore_index) {
    MEETING;
    float factor = share / counted(targets, samples, ignore_index, meeting);
    float even = smoothing / (float)classes * factor, at_target = (1.0f - smoothing) * factor;
    EACH(i, samples * width) {
        unsigned s = i / width;
        int target = targets[s];
        const float *of_sample = statistics + 4 * s;
        float softmax = expf(slice[i] - of_sample[0]) * (factor / of_sample[1]);
        bool is_target = first + i % width == (unsigned)target;
        slice[i] = target == ignore_index ? 0.0f : softmax - even - (is_target ? at_target : 0.0f);
    }
}
