// What all kernels share: how work is spread over threads, and sums that keep their digits.
//
// Counts and places are 32 bits wide: the runtime refuses tensors of 2^31 elements and more, so that `i += stride` of the
// loops below does not overflow. A pointer that is null stands for an operand that a step does not have. An output that
// `adds` is added to rather than overwritten.
#pragma once

// The most threads of a block.
#define THREADS 256

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define HELPER static __forceinline__ __device__

// For every `i` below `count`, each in a thread of its own as far as there are threads.
#define EACH(i, count) \
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < (count); i += gridDim.x * blockDim.x)

// For every `i` below `count`, spread over the threads of one block.
#define EACH_IN_BLOCK(i, count) for (unsigned i = threadIdx.x; i < (count); i += blockDim.x)

HELPER void put(float *to, unsigned i, float value, int adds) {
    to[i] = adds ? to[i] + value : value;
}

// A sum and what rounding has taken from it (Knuth's two-sum), which together have the digits of double precision
// at the speed of memory.
struct Sum {
    float sum, rest;

    __forceinline__ __device__ void add(float x) {
        float total = sum + x;
        float added = total - sum;
        rest += (sum - (total - added)) + (x - added);
        sum = total;
    }

    __forceinline__ __device__ void add(Sum other) {
        add(other.sum);
        rest += other.rest;
    }

    __forceinline__ __device__ float value() const {
        return sum + rest;
    }
};

HELPER Sum nothing() {
    return Sum{0.0f, 0.0f};
}

#define ALL_LANES 0xffffffffu

// The sum over the lanes of a warp, in every lane.
HELPER Sum warp_sum(Sum x) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Sum other;
        other.sum = __shfl_xor_sync(ALL_LANES, x.sum, distance);
        other.rest = __shfl_xor_sync(ALL_LANES, x.rest, distance);
        x.add(other);
    }
    return x;
}

// The largest number over the lanes of a warp, in every lane; NaN if there is one.
HELPER float warp_max(float x) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, x, distance);
        x = other > x || other != other ? other : x;
    }
    return x;
}

// Memory in which the warps of a block meet.
#define MEETING __shared__ float meeting[2 * THREADS / 32]

// The sum over the threads of a block, in every thread. All threads of the block, whole warps, must call it.
HELPER Sum block_sum(Sum x, float *meeting) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = warp_sum(x);
    __syncthreads(); // Nobody reads any more what an earlier call has left.
    if (lane == 0) {
        meeting[2 * warp] = x.sum;
        meeting[2 * warp + 1] = x.rest;
    }
    __syncthreads();
    x = nothing();
    for (unsigned i = 0; i < warps; i++) {
        x.add(Sum{meeting[2 * i], meeting[2 * i + 1]});
    }
    return x;
}

// The largest number over the threads of a block, in every thread; NaN if there is one.
HELPER float block_max(float x, float *meeting) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = warp_max(x);
    __syncthreads();
    if (lane == 0) {
        meeting[warp] = x;
    }
    __syncthreads();
    x = meeting[0];
    for (unsigned i = 1; i < warps; i++) {
        float other = meeting[i];
        x = other > x || other != other ? other : x;
    }
    return x;
}

#define INFINITE __int_as_float(0x7f800000)
