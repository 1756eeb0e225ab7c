/* family_attention.c - one block of attention, of both cache types. */
#include <math.h>

#include "tests/kernels/family.h"

enum { MAX_DIM = 128 };

/* Attention of one query by its definition: softmax in double over positions from `first` on. q
 * [dk], k [n, dk], v [n, dv], out [dv]. cap 0: none. */
static void attended(float *out, const float *q, const float *k, const float *v, int32_t first,
                     int32_t n, int32_t dk, int32_t dv, float scale, float cap) {
    double sums[MAX_DIM] = {0}, weight = 0;
    for (int32_t a = first; a < n; a++) {
        double s = 0;
        for (int32_t b = 0; b < dk; b++)
            s += (double)q[b] * (double)k[a * dk + b];
        s *= (double)scale;
        s = exp(cap > 0 ? (double)cap * tanh(s / (double)cap) : s);
        weight += s;
        for (int32_t e = 0; e < dv; e++)
            sums[e] += s * (double)v[a * dv + e];
    }
    for (int32_t e = 0; e < dv; e++)
        out[e] = (float)(sums[e] / weight);
}

/* Three blocks of online softmax; the reference is also held against plain softmax in double. K
 * [n, dk] goes into blocks whose places that no position has hold NaN, which must not matter. */
static void check_attend(checker *c, bool is_f16, int32_t dk, int32_t dv, int32_t last,
                         int32_t first, float cap) {
    enum { N_Q = 15, BLOCKS = 3 };
    const int32_t n = (BLOCKS - 1) * DPI_KV_BLOCK + last;
    const int64_t n_blocked = (int64_t)BLOCKS * DPI_KV_BLOCK * dk;
    const float scale = 1.0f / sqrtf((float)dk);
    float *q = randoms(c, N_Q * dk, 2), *k = randoms(c, (int64_t)n * dk, 1);
    float *v = randoms(c, (int64_t)n * dv, 1), *kb = zeros(n_blocked, 4);
    uint16_t *kh = zeros(n_blocked, 2), *vh = zeros((int64_t)n * dv, 2);
    if (is_f16) { /* the exact answer is about what is stored */
        c->ref.f32_to_f16(kh, k, (int64_t)n * dk);
        c->ref.f32_to_f16(vh, v, (int64_t)n * dv);
        c->ref.f16_to_f32(k, kh, (int64_t)n * dk);
        c->ref.f16_to_f32(v, vh, (int64_t)n * dv);
    }
    for (int64_t a = 0; a < n_blocked; a++)
        kb[a] = NAN;
    for (int32_t a = first * dk; a < n * dk; a++)
        kb[dpi_kv_k_at(a / dk, a % dk, dk)] = k[a];
    c->ref.f32_to_f16(kh, kb, n_blocked);
    float acc[2][N_Q * MAX_DIM] = {{0}}, m[2][N_Q], l[2][N_Q] = {{0}};
    for (int h = 0; h < N_Q; h++)
        m[0][h] = m[1][h] = -INFINITY;
    for (int b = 0; b < BLOCKS; b++)
        for (int t = 0; t < 2; t++) {
            const dpi_kernels *f = t ? &c->ref : &c->isa;
            const int64_t at = b * DPI_KV_BLOCK;
            const int32_t from = b == 0 ? first : 0, count = b + 1 < BLOCKS ? DPI_KV_BLOCK : last;
            if (is_f16)
                f->attend_f16(acc[t], m[t], l[t], q, kh + at * dk, vh + at * dv, N_Q, from, count,
                              dk, dv, scale, cap, kh, vh);
            else
                f->attend_f32(acc[t], m[t], l[t], q, kb + at * dk, v + at * dv, N_Q, from, count,
                              dk, dv, scale, cap, kb, v);
        }
    for (int h = 0; h < N_Q; h++) {
        float exact[MAX_DIM];
        attended(exact, q + h * dk, k, v, first, n, dk, dv, scale, cap);
        for (int t = 0; t < 2; t++) {
            float *got = acc[t] + h * dv;
            for (int32_t e = 0; e < dv; e++)
                got[e] /= l[t][h];
            assert_close(got, exact, dv, 4, t ? 4 * EPS : 64 * EPS);
        }
    }
    free(q), free(k), free(v), free(kh), free(vh), free(kb);
}

static void check_sizes(checker *c, bool is_f16) {
    static const int32_t dims[][2] = {{8, 8}, {64, 64}, {50, 34}, {128, 128}};
    static const int32_t counts[] = {1, 5, 16, 63, 64}, firsts[] = {0, 63, 1, 17, 40};
    for (int i = 0; i < 20; i++) {
        check_attend(c, is_f16, dims[i / 5][0], dims[i / 5][1], counts[i % 5], 0, 0);
        check_attend(c, is_f16, dims[i / 5][0], dims[i / 5][1], counts[i % 5], firsts[i % 5],
                     i % 2 ? 1.5f : 0);
    }
}

CHECK(attend_f32) { check_sizes(c, false); }
CHECK(attend_f16) { check_sizes(c, true); }

enum { HEADS = TIMED_HEADS, DIM = TIMED_HEAD_DIM, N = DPI_KV_BLOCK * DIM };
#define ZEROS ((float[HEADS]){0})

KERNEL_OF(attend_f32, 4.0 * HEADS * N, 8.0 * N, t->y, ZEROS, ZEROS, t->x, t->x + TIMED_N_IN,
          t->x + TIMED_N_IN + N, HEADS, 0, DPI_KV_BLOCK, DIM, DIM, 0.125f, 0,
          t->x + TIMED_N_IN, t->x + TIMED_N_IN + N)
KERNEL_OF(attend_f16, 4.0 * HEADS * N, 4.0 * N, t->y, ZEROS, ZEROS, t->x, t->f16, t->f16 + N, HEADS,
          0, DPI_KV_BLOCK, DIM, DIM, 0.125f, 0, t->f16, t->f16 + N)
