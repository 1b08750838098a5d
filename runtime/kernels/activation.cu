// Activation functions, with PyTorch's choices where a derivative has none.
#include "common.cuh"

// `y = f(x)`, and `dx = dy f'` from `k`, what the planner kept: the output where that suffices, else the input.
#define ACTIVATION(name, f, derivative)                                                                                  \
    KERNEL name##_forward(const float *from, float *to, unsigned count, float slope) {                                   \
        EACH(i, count) {                                                                                                 \
            float x = from[i];                                                                                           \
            to[i] = f;                                                                                                   \
        }                                                                                                                \
    }                                                                                                                    \
    KERNEL name##_backward(const float *gradient, const float *kept, float *to, unsigned count, int adds, float slope) { \
        EACH(i, count) {                                                                                                 \
            float dy = gradient[i], k = kept[i];                                                                         \
            put(to, i, derivative, adds);                                                                                \
        }                                                                                                                \
    }

HELPER float sigmoid_of(float x) {
    return 1.0f / (1.0f + expf(-x));
}

// The probability that a standard normal variable is below `x`. By erfc rather than erf, which keeps its digits where
// the probability is small.
HELPER float normal_distribution(float x) {
    return 0.5f * erfcf(-x * 0.70710678118654752f);
}

HELPER float gelu_derivative(float x) {
    float density = expf(-0.5f * x * x) * 0.39894228040143268f;
    return normal_distribution(x) + x * density;
}

// `sqrt(2 / pi)`.
#define GELU_FACTOR 0.79788456080286536f
#define GELU_CUBE 0.044715f

// The tanh in the approximation of GELU (Hendrycks & Gimpel 2016).
HELPER float gelu_tanh_of(float x) {
    return tanhf(GELU_FACTOR * (x + GELU_CUBE * x * x * x));
}

HELPER float gelu_tanh_derivative(float x) {
    float t = gelu_tanh_of(x);
    float slope = GELU_FACTOR * (1.0f + 3.0f * GELU_CUBE * x * x);
    return 0.5f * (1.0f + t + x * (1.0f - t * t) * slope);
}

HELPER float silu_derivative(float x) {
    float s = sigmoid_of(x);
    return s * (1.0f + x * (1.0f - s));
}

// As in PyTorch, NaN stays NaN: a minimum or maximum would drop it.
ACTIVATION(relu, x < 0.0f ? 0.0f : x, k > 0.0f ? dy : 0.0f)
ACTIVATION(relu6, x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x, k > 0.0f && k < 6.0f ? dy : 0.0f)
// The output, which is kept where the slope is positive, has the input's sign.
ACTIVATION(leaky_relu, x > 0.0f ? x : slope * x, k > 0.0f ? dy : slope * dy)
ACTIVATION(gelu, x * normal_distribution(x), dy * gelu_derivative(k))
ACTIVATION(gelu_tanh, 0.5f * x * (1.0f + gelu_tanh_of(x)), dy * gelu_tanh_derivative(k))
ACTIVATION(silu, x * sigmoid_of(x), dy * silu_derivative(k))
ACTIVATION(sigmoid, sigmoid_of(x), dy * k * (1.0f - k))
ACTIVATION(tanh, tanhf(x), dy * (1.0f - k * k))
