// Kernels for the emulator's tests, of the kinds that training needs. `kernels.ptx` was made of this file by NVRTC 12.1 with
// `--gpu-architecture=compute_75 -lineinfo`.
#define KERNEL extern "C" __global__ void
#define ALL 0xffffffffu
#define INFINITY __int_as_float(0x7f800000)

__device__ __forceinline__ int thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// y += a x
KERNEL axpy(float *y, const float *__restrict__ x, float a, int n) {
    int i = thread();
    if (i < n) y[i] += a * x[i];
}

// Four elements a thread.
KERNEL scale4(float4 *y, const float4 *x, float a, int n) {
    int i = thread();
    if (i < n) {
        float4 v = x[i];
        y[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
    }
}

// Bytes to floats.
KERNEL normalize(float *y, const unsigned char *x, float mean, float std, int n) {
    for (int i = thread(); i < n; i += gridDim.x * blockDim.x) y[i] = (x[i] / 255.0f - mean) / std;
}

// Half precision there and back, by the instructions of the hardware.
KERNEL halves(float *y, const float *x, int n) {
    int i = thread();
    if (i < n) {
        unsigned short half;
        asm("{ cvt.rn.f16.f32 %0, %1; }" : "=h"(half) : "f"(x[i]));
        asm("{ cvt.f32.f16 %0, %1; }" : "=f"(y[i]) : "h"(half));
    }
}

__device__ __forceinline__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(ALL, v, offset);
    return v;
}

__device__ __forceinline__ float warp_max(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(ALL, v, offset));
    return v;
}

// A row a block.
KERNEL softmax(float *y, const float *x, int n) {
    __shared__ float parts[32];
    const float *row = x + (size_t)blockIdx.x * n;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
    most = warp_max(most);
    if (lane == 0) parts[warp] = most;
    __syncthreads();
    most = warp_max(lane < warps ? parts[lane] : -INFINITY);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - most);
    sum = warp_sum(sum);
    if (lane == 0) parts[warp] = sum;
    __syncthreads();
    sum = warp_sum(lane < warps ? parts[lane] : 0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = expf(row[i] - most) / sum;
}

// c = a b, m x k times k x n, in tiles.
KERNEL matmul(float *c, const float *a, const float *b, int m, int n, int k) {
    __shared__ float left[16][16], right[16][17];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int start = 0; start < k; start += 16) {
        left[y][x] = row < m && start + x < k ? a[(size_t)row * k + start + x] : 0;
        right[y][x] = column < n && start + y < k ? b[(size_t)(start + y) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) sum = fmaf(left[y][i], right[i][x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[(size_t)row * n + column] = sum;
}

// Philox4x32-10.
KERNEL philox(unsigned *y, unsigned long long seed, unsigned long long offset, int n) {
    unsigned long long i = thread();
    if (4 * i >= n) return;
    unsigned c[4] = {(unsigned)(i + offset), (unsigned)((i + offset) >> 32), 0, 0};
    unsigned key0 = seed, key1 = seed >> 32;
    for (int round = 0; round < 10; round++) {
        unsigned long long p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
        unsigned c0 = (unsigned)(q >> 32) ^ c[1] ^ key0, c2 = (unsigned)(p >> 32) ^ c[3] ^ key1;
        c[0] = c0, c[1] = q, c[2] = c2, c[3] = p;
        key0 += 0x9E3779B9, key1 += 0xBB67AE85;
    }
    for (int j = 0; j < 4 && 4 * i + j < n; j++) y[4 * i + j] = c[j];
}

// The place of the largest of each window, as max-pooling keeps it.
KERNEL argmax_pool(int *y, const float *x, int height, int width, int kernel, int stride, int rows, int columns) {
    int i = thread();
    if (i >= rows * columns) return;
    int top = i / columns * stride, left = i % columns * stride, place = -1;
    float most = -INFINITY;
    for (int r = top; r < min(top + kernel, height); r++)
        for (int c = left; c < min(left + kernel, width); c++) {
            float v = x[r * width + c];
            if (v > most || v != v) most = v, place = r * width + c;
        }
    y[i] = place;
}

// Functions, each of which is several instructions.
KERNEL functions(float *y, const float *x, int n) {
    int i = thread();
    if (i >= n) return;
    float v = x[i], a = fabsf(v);
    float results[16] = {expf(v),  logf(a),      tanhf(v),  erff(v),   sqrtf(a),  rsqrtf(a), sinf(v),        powf(a, 1.5f),
                         log1pf(a), expm1f(v),   floorf(v), rintf(v), truncf(v), roundf(v), fmodf(v, 0.75f), 1.0f / (1.0f + expf(-v))};
#pragma unroll
    for (int j = 0; j < 16; j++) y[16 * i + j] = results[j];
}

// A thread's own array, at places that are not known before.
KERNEL histogram(int *y, const int *x, int n) {
    int counts[8];
    for (int i = 0; i < 8; i++) counts[i] = 0;
    for (int i = 0; i < n; i++) counts[x[thread() * n + i] & 7]++;
    for (int i = 0; i < 8; i++) y[thread() * 8 + i] = counts[i];
}

// Sums over threads of all blocks.
KERNEL count(float *sum, int *positive, const float *x, int n) {
    int i = thread();
    float v = i < n ? x[i] : 0;
    unsigned mask = __ballot_sync(ALL, v > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(positive, __popc(mask));
    atomicAdd(sum, v);
}

// Doubles in shared memory whose size the launch gives.
KERNEL sum_double(double *y, const float *x, int n) {
    extern __shared__ double parts[];
    double sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[0] = parts[0];
}

// Ways of a warp that part and meet again.
KERNEL ways(int *y, int n) {
    int i = thread(), steps = 0;
    for (int v = i + 1; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) steps++;
    if (i < n) y[i] = steps;
}

__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
__device__ int launches = 5;

// Memory of the module.
KERNEL smooth(float *y, const float *x, int n) {
    int i = thread();
    if (i == 0) launches += 1;
    if (i > 0 && i < n - 1) y[i] = weights[0] * x[i - 1] + weights[1] * x[i] + weights[2] * x[i + 1];
}

// Who each thread is.
KERNEL places(int *y) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    y[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        ((((blockIdx.x * 10 + blockIdx.y) * 10 + blockIdx.z) * 10 + threadIdx.x) * 10 + threadIdx.y) * 10 + threadIdx.z;
}

// Each warp hands its value to the next, over and over.
KERNEL relay(int *y, int rounds) {
    __shared__ int value;
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) value = 1;
    __syncthreads();
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < blockDim.x / 32; turn++) {
            if (warp == turn && threadIdx.x % 32 == 0) value = 2 * value + turn;
            __syncthreads();
        }
    y[threadIdx.x] = value;
}
