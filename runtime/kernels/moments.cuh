// Mean and reciprocal standard deviation, which all normalizations are made of.
#pragma once
#include "common.cuh"

// The mean, what its nearest float leaves of it, and `1 / sqrt(variance + eps)` with the biased variance.
struct Moments {
    float mean, rest, variance, rstd;
};

HELPER Moments moments(float mean, Sum distances, Sum squares, float count, float eps) {
    // The squares are those around the float that is nearest to the mean: the difference of two large sums would lose
    // its digits.
    float rest = distances.value() / count;
    float variance = squares.value() / count - rest * rest;
    variance = variance < 0.0f ? 0.0f : variance;
    return Moments{mean, rest, variance, 1.0f / sqrtf(variance + eps)};
}

// `(x - mean) rstd weight + bias`. The mean is subtracted first: folded into the offset, a mean that is large beside the
// deviation would take the digits of the result.
struct Line {
    float center, factor, offset;

    __forceinline__ __device__ float at(float x) const {
        return (x - center) * factor + offset;
    }
};

HELPER Line line(Moments m, float weight, float bias) {
    float factor = m.rstd * weight;
    return Line{m.mean, factor, bias - m.rest * factor};
}
