// The optimizers' updates, with the formulas of `torch.optim` (Lion: those of its authors), and clipping by global norm.
#include "common.cuh"

// An element of the gradient, bounded by `scale` where there is one. An accumulated gradient is left at zero.
HELPER float take(float *gradient, unsigned i, const float *scale, int clears) {
    float d = gradient[i];
    if (clears) {
        gradient[i] = 0.0f;
    }
    return scale ? d * *scale : d;
}

// `kept` and `added` are momentum and what dampening leaves; the first buffer is the gradient itself, undampened. Without
// momentum there is no buffer. Nesterov's step looks `ahead` by the momentum; others by nothing.
KERNEL sgd(float *p, float *gradient, const float *scale, float *buffer, unsigned count, int clears, float lr, float decay,
           float kept, float added, float ahead) {
    EACH(i, count) {
        float d = take(gradient, i, scale, clears) + decay * p[i];
        if (buffer) {
            float moved = kept == 0.0f ? added * d : kept * buffer[i] + added * d;
            buffer[i] = moved;
            d = ahead == 0.0f ? moved : d + ahead * moved;
        }
        p[i] -= lr * d;
    }
}

// SGD where the gradient has been added to the momentum already, which the update before had decayed.
KERNEL sgd_from_momentum(float *p, float *buffer, unsigned count, float lr, float decay, float momentum) {
    EACH(i, count) {
        float velocity = buffer[i] + decay * p[i];
        p[i] -= lr * velocity;
        buffer[i] = momentum * velocity;
    }
}

// Adam, and AdamW, which shrinks the parameter (`shrink`) in place of decaying the gradient (`decay`).
KERNEL adam(float *p, float *gradient, const float *scale, float *mean, float *square, unsigned count, int clears, float decay,
            float shrink, float new_mean, float old_square, float new_square, float step_size, float root, float eps) {
    EACH(i, count) {
        float d = take(gradient, i, scale, clears) + decay * p[i];
        float m = mean[i], v = square[i];
        m += new_mean * (d - m);
        v = old_square * v + new_square * d * d;
        mean[i] = m;
        square[i] = v;
        p[i] = p[i] * shrink - step_size * m / (sqrtf(v) / root + eps);
    }
}

// Without momentum there is no buffer; centered, there is a mean.
KERNEL rmsprop(float *p, float *gradient, const float *scale, float *square, float *buffer, float *mean, unsigned count, int clears,
               float lr, float decay, float old, float fresh, float eps, float momentum) {
    EACH(i, count) {
        float d = take(gradient, i, scale, clears) + decay * p[i];
        float v = old * square[i] + fresh * d * d;
        square[i] = v;
        if (mean) {
            float m = mean[i];
            m += fresh * (d - m);
            mean[i] = m;
            v -= m * m;
        }
        float change = d / (sqrtf(v) + eps);
        if (buffer) {
            change += momentum * buffer[i];
            buffer[i] = change;
        }
        p[i] -= lr * change;
    }
}

KERNEL adagrad(float *p, float *gradient, const float *scale, float *sum, unsigned count, int clears, float lr, float decay,
               float eps) {
    EACH(i, count) {
        float d = take(gradient, i, scale, clears) + decay * p[i];
        float total = sum[i] + d * d;
        sum[i] = total;
        p[i] -= lr * d / (sqrtf(total) + eps);
    }
}

KERNEL lion(float *p, float *gradient, const float *scale, float *mean, unsigned count, int clears, float lr, float shrink,
            float old_direction, float new_direction, float old_mean, float new_mean) {
    EACH(i, count) {
        float d = take(gradient, i, scale, clears);
        float m = mean[i];
        float direction = old_direction * m + new_direction * d;
        // The sign of zero is zero; that of NaN is NaN.
        float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
        p[i] = p[i] * shrink - lr * sign;
        mean[i] = old_mean * m + new_mean * d;
    }
}

// Adds the squares of a gradient to `total`, or begins with them: one block's work, since the plan has no memory in which
// several could meet.
KERNEL add_squares(const float *gradient, float *total, unsigned count, int is_first) {
    MEETING;
    Sum sum = nothing();
    EACH_IN_BLOCK(i, count) {
        sum.add(gradient[i] * gradient[i]);
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        *total = is_first ? sum.value() : *total + sum.value();
    }
}

// From the sum of all squares to the factor that bounds the norm, as `torch.nn.utils.clip_grad_norm_` computes it. One thread's
// work.
KERNEL gradient_scale(float *total, float most) {
    if (threadIdx.x == 0) {
        float scale = most / (sqrtf(*total) + 1e-6f);
        *total = scale > 1.0f ? 1.0f : scale;
    }
}
