// `+ - *` between values, with broadcasting, and `mul x + add` for numbers.
//
// Where a value is repeated to the result's shape, its gradient is the sum over the repetitions.
#include "common.cuh"

// As many as a shape of the language has, and the batch.
#define MOST_AXES 17

// Axes along which two tensors are walked, innermost first: how many places each has, and how far apart neighbours
// lie in either tensor, 0 where one element serves all.
struct Axes {
    unsigned count;
    unsigned extent[MOST_AXES];
    unsigned first[MOST_AXES];
    unsigned second[MOST_AXES];
};

struct Places {
    unsigned first, second;
};

// Where element `i` of the walk lies in both.
HELPER Places places(const Axes &axes, unsigned i) {
    Places at = {0, 0};
#pragma unroll
    for (unsigned k = 0; k < MOST_AXES; k++) {
        if (k < axes.count) {
            unsigned next = i / axes.extent[k];
            unsigned index = i - next * axes.extent[k];
            at.first += index * axes.first[k];
            at.second += index * axes.second[k];
            i = next;
        }
    }
    return at;
}

// `y = a op b`. One of the two may lie where `y` does.
#define OPERATION(name, op)                                                                              \
    KERNEL name##_forward(const float *a, const float *b, float *y, unsigned count, const Axes axes) {   \
        EACH(i, count) {                                                                                 \
            Places at = places(axes, i);                                                                 \
            y[i] = a[at.first] op b[at.second];                                                          \
        }                                                                                                \
    }

OPERATION(add, +)
OPERATION(sub, -)
OPERATION(mul, *)

// `to = factor from`, or `factor from other` where there is another value, which is repeated to the shape of both.
KERNEL whole_backward(const float *from, const float *other, float *to, unsigned count, float factor, int adds,
                      const Axes axes) {
    EACH(i, count) {
        float o = other ? other[places(axes, i).second] : 1.0f;
        put(to, i, factor * from[i] * o, adds);
    }
}

// The sum of `factor dy other` over the repetitions of each element: `kept` walks the value's own axes, `repeated` those
// along which it is repeated, both in `dy` and in the other value. A thread for each element.
KERNEL repeated_backward(const float *dy, const float *other, float *to, unsigned count, unsigned repetitions, float factor,
                         int adds, const Axes kept, const Axes repeated) {
    EACH(i, count) {
        Places start = places(kept, i);
        Sum sum = nothing();
        for (unsigned r = 0; r < repetitions; r++) {
            Places at = places(repeated, r);
            float o = other ? other[start.second + at.second] : 1.0f;
            sum.add(dy[start.first + at.first] * o);
        }
        put(to, i, factor * sum.value(), adds);
    }
}

// The same with a block for each element, for many repetitions.
KERNEL repeated_backward_by_block(const float *dy, const float *other, float *to, unsigned repetitions, float factor, int adds,
                                  const Axes kept, const Axes repeated) {
    MEETING;
    Places start = places(kept, blockIdx.x);
    Sum sum = nothing();
    EACH_IN_BLOCK(r, repetitions) {
        Places at = places(repeated, r);
        float o = other ? other[start.second + at.second] : 1.0f;
        sum.add(dy[start.first + at.first] * o);
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        put(to, blockIdx.x, factor * sum.value(), adds);
    }
}

// `y = mul x + add`; also a copy, and a sum of gradients.
KERNEL affine(const float *x, float *y, unsigned count, float mul, float offset, int adds) {
    EACH(i, count) {
        put(y, i, mul * x[i] + offset, adds);
    }
}

// `dx = 2 dy x`, of `x x`.
KERNEL square_backward(const float *dy, const float *x, float *dx, unsigned count, int adds) {
    EACH(i, count) {
        put(dx, i, 2.0f * dy[i] * x[i], adds);
    }
}

// The axes in another order: `from` is walked in the order of `to`.
KERNEL permute(const float *from, float *to, unsigned count, int adds, const Axes axes) {
    EACH(i, count) {
        put(to, i, from[places(axes, i).first], adds);
    }
}

// Values side by side along an axis, in terms of rows: of `width` elements in `y`, of `own` in this value, which begin
// after `before` others. A value with fewer rows than `y` comes again for each sample.
KERNEL concat_forward(const float *x, float *y, unsigned count, unsigned x_count, unsigned own, unsigned width, unsigned before) {
    EACH(i, count) {
        unsigned row = i / own;
        y[row * width + before + i % own] = x[i % x_count];
    }
}

KERNEL concat_backward(const float *dy, float *dx, unsigned count, unsigned rows, unsigned own, unsigned width, unsigned before,
                       int adds) {
    EACH(i, count) {
        Sum sum = nothing();
        for (unsigned row = i / own; row < rows; row += count / own) {
            sum.add(dy[row * width + before + i % own]);
        }
        put(dx, i, sum.value(), adds);
    }
}
