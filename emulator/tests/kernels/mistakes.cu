// Kernels that each do one thing wrong. `mistakes.ptx` was made of this file by NVRTC 12.1 with
// `--gpu-architecture=compute_75 -lineinfo`. The tests name the lines.
#define KERNEL extern "C" __global__ void

KERNEL past_the_end(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) y[i] = 1;
}

KERNEL before_the_start(float *y, const float *x) {
    y[threadIdx.x] = x[(long long)threadIdx.x - 3];
}

KERNEL never_written(float *y, const float *x) {
    y[threadIdx.x] = x[threadIdx.x] + 1;
}

KERNEL misaligned(float *y, const char *x) {
    y[threadIdx.x] = *(const float *)(x + 4 * threadIdx.x + (threadIdx.x == 7));
}

KERNEL half_a_barrier(float *y) {
    if (threadIdx.x < 40) __syncthreads();
    y[threadIdx.x] = 1;
}

KERNEL early_return(float *y, int n) {
    if (threadIdx.x >= n) return;
    __syncthreads();
    y[threadIdx.x] = 1;
}

KERNEL missing_barrier(float *y) {
    __shared__ float parts[64];
    parts[threadIdx.x] = 0;
    __syncthreads();
    parts[threadIdx.x] = threadIdx.x + 1;
    y[threadIdx.x] = parts[63 - threadIdx.x];
}

KERNEL missing_warp_barrier(float *y) {
    __shared__ float parts[32];
    parts[threadIdx.x] = threadIdx.x;
    y[threadIdx.x] = parts[31 - threadIdx.x];
}

KERNEL with_warp_barrier(float *y) {
    __shared__ float parts[32];
    parts[threadIdx.x] = threadIdx.x;
    __syncwarp();
    y[threadIdx.x] = parts[31 - threadIdx.x];
}

KERNEL shared_past_the_end(float *y, int n) {
    __shared__ float parts[32];
    parts[threadIdx.x + n] = 1;
    __syncthreads();
    y[threadIdx.x] = parts[threadIdx.x];
}

KERNEL lonely_shuffle(float *y) {
    float v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_xor_sync(0x0000ffff, v, 16);
    y[threadIdx.x] = v;
}

KERNEL absent_shuffle(float *y) {
    float v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffff, v, 1);
    else v = __shfl_up_sync(0xffffffff, v, 1);
    y[threadIdx.x] = v;
}

KERNEL endless(float *y) {
    volatile float *p = y;
    while (*p == 0) {
    }
}

KERNEL trap(float *y) {
    if (y[threadIdx.x] != 0) asm("trap;");
}

// The order of threads shows.
KERNEL last_wins(int *y) {
    y[0] = threadIdx.x;
}

KERNEL blocks_add(float *y, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i % 32] += x[i];
}

// Each block reads what the block before it writes.
KERNEL blocks_shift(float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n) y[i + 1] = y[i] + 1;
}

// All blocks write the same, and none reads it: no harm.
KERNEL blocks_agree(int *y, const int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] != 0) y[0] = 1;
}
