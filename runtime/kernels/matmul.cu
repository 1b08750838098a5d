// Products of matrices, where cuBLAS is not there: `c = a b`, or `c += a b` if it adds.
//
// Each of `a` (rows x depth) and `b` (depth x columns) has its own distance from row to row and from column to column, so
// that transposed matrices need no copy; the rows of `c` are contiguous. Products of a batch lie `batch` elements apart.
//
// A block computes a tile of 64 x 64 elements, each thread 4 x 4 of them, from 16 rows and columns at a time, which the
// block has copied to shared memory.
#include "common.cuh"

#define TILE 64
#define DEPTH 16

struct Matrix {
    unsigned row, column, batch;
};

KERNEL matmul(const float *a, const float *b, float *c, unsigned rows, unsigned columns, unsigned depth, unsigned batches,
              const Matrix of_a, const Matrix of_b, const Matrix of_c, int adds) {
    // Four floats beyond the tile keep threads that write a column out of one another's banks, and rows aligned.
    __shared__ __align__(16) float left[DEPTH][TILE + 4];
    __shared__ __align__(16) float right[DEPTH][TILE + 4];
    unsigned tiles = (columns + TILE - 1) / TILE;
    unsigned first_row = blockIdx.x / tiles * TILE, first_column = blockIdx.x % tiles * TILE;
    unsigned y = threadIdx.x / 16 * 4, x = threadIdx.x % 16 * 4;
    for (unsigned batch = blockIdx.y; batch < batches; batch += gridDim.y) {
        const float *a_here = a + (size_t)batch * of_a.batch;
        const float *b_here = b + (size_t)batch * of_b.batch;
        float *c_here = c + (size_t)batch * of_c.batch;
        float sums[4][4] = {};
        for (unsigned start = 0; start < depth; start += DEPTH) {
#pragma unroll
            for (unsigned j = 0; j < TILE * DEPTH / THREADS; j++) {
                // Neighbouring threads read neighbouring elements, whichever way the matrix lies.
                unsigned e = threadIdx.x + j * THREADS;
                unsigned k = of_a.column == 1 ? e % DEPTH : e / TILE;
                unsigned i = of_a.column == 1 ? e / DEPTH : e % TILE;
                unsigned row = first_row + i, at = start + k;
                bool inside = row < rows && at < depth;
                left[k][i] = inside ? a_here[(size_t)row * of_a.row + (size_t)at * of_a.column] : 0.0f;
                k = of_b.column == 1 ? e / TILE : e % DEPTH;
                i = of_b.column == 1 ? e % TILE : e / DEPTH;
                unsigned column = first_column + i;
                at = start + k;
                inside = column < columns && at < depth;
                right[k][i] = inside ? b_here[(size_t)at * of_b.row + (size_t)column * of_b.column] : 0.0f;
            }
            __syncthreads();
#pragma unroll
            for (unsigned k = 0; k < DEPTH; k++) {
                float4 p = *(const float4 *)&left[k][y];
                float4 q = *(const float4 *)&right[k][x];
                float of_left[4] = {p.x, p.y, p.z, p.w}, of_right[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
                for (unsigned i = 0; i < 4; i++) {
#pragma unroll
                    for (unsigned j = 0; j < 4; j++) {
                        sums[i][j] += of_left[i] * of_right[j];
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
#pragma unroll
            for (unsigned j = 0; j < 4; j++) {
                unsigned row = first_row + y + i, column = first_column + x + j;
                if (row < rows && column < columns) {
                    put(c_here + (size_t)row * of_c.row, column, sums[i][j], adds);
                }
            }
        }
    }
}
