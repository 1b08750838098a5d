// What convolutions need beside products of matrices, for convolutions and transposed ones alike.
//
// An *image* has `channels` a group, a *map* has `maps` a group; the kernel `[groups * maps, channels, height, width]` slides over
// the image, one position for each element of the map. Positions are counted through all samples. A tile holds the
// columns of the image ("im2col", Chellapilla et al. 2006) for `width` positions from `first` on, and what the map has
// there.
#include "common.cuh"

struct Geometry {
    unsigned groups;
    unsigned channels;
    unsigned maps;
    // Height and width of each.
    unsigned image[2];
    unsigned map[2];
    unsigned kernel[2];
    unsigned stride[2];
    unsigned padding[2];
    unsigned dilation[2];
};

// The pixel under a tap, along one axis; beyond the image if the tap lies on the padding.
template <int axis> HELPER unsigned pixel(const Geometry &g, unsigned position, unsigned tap) {
    return position * g.stride[axis] + tap * g.dilation[axis] - g.padding[axis];
}

// The position that has its tap on the pixel, along one axis; beyond the map if there is none.
template <int axis> HELPER unsigned position(const Geometry &g, unsigned pixel, unsigned tap) {
    int distance = (int)(pixel + g.padding[axis]) - (int)(tap * g.dilation[axis]);
    int stride = g.stride[axis];
    return distance < 0 || distance % stride != 0 ? 0xffffffffu : (unsigned)(distance / stride);
}

// A row for each channel of the group and tap, an element in it for each position.
KERNEL columns(const float *image, float *tile, unsigned group, unsigned first, unsigned width, const Geometry g) {
    unsigned taps = g.kernel[0] * g.kernel[1], positions = g.map[0] * g.map[1];
    EACH(i, g.channels * taps * width) {
        unsigned row = i / width, at = first + i % width;
        unsigned channel = row / taps, tap = row % taps, sample = at / positions, p = at % positions;
        unsigned y = pixel<0>(g, p / g.map[1], tap / g.kernel[1]), x = pixel<1>(g, p % g.map[1], tap % g.kernel[1]);
        bool inside = y < g.image[0] && x < g.image[1];
        unsigned plane = (sample * g.groups + group) * g.channels + channel;
        tile[i] = inside ? image[(plane * g.image[0] + y) * g.image[1] + x] : 0.0f;
    }
}

// Where element `i` of a tile of the map lies in the map.
HELPER unsigned map_place(const Geometry &g, unsigned i, unsigned group, unsigned first, unsigned width) {
    unsigned positions = g.map[0] * g.map[1], at = first + i % width;
    return ((at / positions * g.groups + group) * g.maps + i / width) * positions + at % positions;
}

// A row for each channel of the group in the map, an element in it for each position.
KERNEL map_to_tile(const float *map, float *tile, unsigned group, unsigned first, unsigned width, const Geometry g) {
    EACH(i, g.maps * width) {
        tile[i] = map[map_place(g, i, group, first, width)];
    }
}

KERNEL tile_to_map(const float *tile, float *map, unsigned group, unsigned first, unsigned width, int adds, const Geometry g) {
    EACH(i, g.maps * width) {
        put(map, map_place(g, i, group, first, width), tile[i], adds);
    }
}

// Adds the columns of a tile to the pixels that they are of. A thread for each pixel that the tile may touch: of `samples`
// samples from `first_sample` on, the `rows` rows from `first_row` on.
KERNEL columns_to_image(const float *tile, float *image, unsigned group, unsigned first, unsigned width, unsigned first_sample,
                        unsigned samples, unsigned first_row, unsigned rows, const Geometry g) {
    unsigned positions = g.map[0] * g.map[1];
    EACH(i, samples * g.channels * rows * g.image[1]) {
        unsigned x = i % g.image[1], y = first_row + i / g.image[1] % rows;
        unsigned plane = i / g.image[1] / rows;
        unsigned channel = plane % g.channels, sample = first_sample + plane / g.channels;
        float sum = 0.0f;
        for (unsigned ky = 0; ky < g.kernel[0]; ky++) {
            unsigned row = position<0>(g, y, ky);
            if (row >= g.map[0]) {
                continue;
            }
            for (unsigned kx = 0; kx < g.kernel[1]; kx++) {
                unsigned column = position<1>(g, x, kx);
                unsigned at = sample * positions + row * g.map[1] + column - first;
                if (column < g.map[1] && at < width) {
                    sum += tile[((channel * g.kernel[0] + ky) * g.kernel[1] + kx) * width + at];
                }
            }
        }
        image[(((sample * g.groups + group) * g.channels + channel) * g.image[0] + y) * g.image[1] + x] += sum;
    }
}

// Where a group has one channel ("depthwise"), there is no product worth its name. `count` elements of the map.
KERNEL depthwise_correlate(const float *image, const float *kernel, float *map, unsigned count, int adds, const Geometry g) {
    unsigned positions = g.map[0] * g.map[1], taps = g.kernel[0] * g.kernel[1];
    EACH(i, count) {
        unsigned p = i % positions, channel = i / positions % (g.groups * g.maps), sample = i / positions / (g.groups * g.maps);
        const float *plane = image + (size_t)(sample * g.groups + channel / g.maps) * g.image[0] * g.image[1];
        float sum = 0.0f;
        for (unsigned ky = 0; ky < g.kernel[0]; ky++) {
            unsigned y = pixel<0>(g, p / g.map[1], ky);
            if (y >= g.image[0]) {
                continue;
            }
            for (unsigned kx = 0; kx < g.kernel[1]; kx++) {
                unsigned x = pixel<1>(g, p % g.map[1], kx);
                if (x < g.image[1]) {
                    sum += plane[y * g.image[1] + x] * kernel[channel * taps + ky * g.kernel[1] + kx];
                }
            }
        }
        put(map, i, sum, adds);
    }
}

// `count` pixels of the image.
KERNEL depthwise_spread(const float *map, const float *kernel, float *image, unsigned count, int adds, const Geometry g) {
    unsigned positions = g.map[0] * g.map[1], taps = g.kernel[0] * g.kernel[1];
    EACH(i, count) {
        unsigned x = i % g.image[1], y = i / g.image[1] % g.image[0];
        unsigned plane = i / g.image[1] / g.image[0], group = plane % g.groups, sample = plane / g.groups;
        float sum = 0.0f;
        for (unsigned channel = group * g.maps; channel < (group + 1) * g.maps; channel++) {
            const float *from = map + (size_t)(sample * g.groups * g.maps + channel) * positions;
            for (unsigned ky = 0; ky < g.kernel[0]; ky++) {
                unsigned row = position<0>(g, y, ky);
                if (row >= g.map[0]) {
                    continue;
                }
                for (unsigned kx = 0; kx < g.kernel[1]; kx++) {
                    unsigned column = position<1>(g, x, kx);
                    if (column < g.map[1]) {
                        sum += from[row * g.map[1] + column] * kernel[channel * taps + ky * g.kernel[1] + kx];
                    }
                }
            }
        }
        put(image, i, sum, adds);
    }
}

// A block for each element of the kernel from a channel on; `count` positions in all samples.
KERNEL depthwise_kernel_gradient(const float *image, const float *map, float *dkernel, unsigned first_channel, unsigned count,
                                 int adds, const Geometry g) {
    MEETING;
    unsigned positions = g.map[0] * g.map[1], taps = g.kernel[0] * g.kernel[1];
    unsigned channel = first_channel + blockIdx.x / taps, tap = blockIdx.x % taps;
    Sum sum = nothing();
    EACH_IN_BLOCK(e, count) {
        unsigned sample = e / positions, p = e % positions;
        unsigned y = pixel<0>(g, p / g.map[1], tap / g.kernel[1]), x = pixel<1>(g, p % g.map[1], tap % g.kernel[1]);
        if (y < g.image[0] && x < g.image[1]) {
            float value = image[((sample * g.groups + channel / g.maps) * g.image[0] + y) * g.image[1] + x];
            sum.add(value * map[(sample * g.groups * g.maps + channel) * positions + p]);
        }
    }
    sum = block_sum(sum, meeting);
    if (threadIdx.x == 0) {
        put(dkernel, blockIdx.x, sum.value(), adds);
    }
}
