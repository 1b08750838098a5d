// Elements zeroed at random in training, the others scaled by `1 / (1 - p)`.
//
// The mask is nowhere kept: element `i` of the batch has the word `i % 4` of Philox 4x32-10 (Salmon et al. 2011) at the
// counter `(i / 4, node, pass)` under the trainer's seed, the same as on the CPU.
#include "common.cuh"

KERNEL dropout(const float *x, float *y, unsigned count, unsigned seed_low, unsigned seed_high, unsigned node, unsigned pass,
               float p, float scale, int adds) {
    unsigned groups = (count + 3) / 4;
    EACH(group, groups) {
        unsigned k0 = seed_low, k1 = seed_high, a = group, b = 0, c = node, d = pass;
#pragma unroll
        for (int round = 0; round < 10; round++) {
            unsigned high0 = __umulhi(0xD2511F53u, a), low0 = 0xD2511F53u * a;
            unsigned high1 = __umulhi(0xCD9E8D57u, c), low1 = 0xCD9E8D57u * c;
            a = high1 ^ b ^ k0;
            b = low1;
            c = high0 ^ d ^ k1;
            d = low0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        unsigned words[4] = {a, b, c, d};
#pragma unroll
        for (unsigned j = 0; j < 4; j++) {
            unsigned i = group * 4 + j;
            if (i < count) {
                float uniform = (float)(words[j] >> 8) * 0x1p-24f;
                put(y, i, uniform < p ? 0.0f : x[i] * scale, adds);
            }
        }
    }
}
