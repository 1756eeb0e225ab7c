/* family_attention.c - one block of attention, of both cache types. */
#include <math.h>

#include "tests/kernels/family.h"

/* One value of attention by its definition: softmax in double. q [dk], k [n, dk], v: a column of
 * [n, dv]. */
static float attended(const float *q, const float *k, const float *v, int32_t n, int32_t dk,
                      int32_t dv, float scale) {
    double sum = 0, weight = 0;
    for (int32_t a = 0; a < n; a++) {
        double s = 0;
        for (int32_t b = 0; b < dk; b++)
            s += (double)q[b] * (double)k[a * dk + b];
        sum += exp(s * (double)scale) * (double)v[a * dv];
        weight += exp(s * (double)scale);
    }
    return (float)(sum / weight);
}

/* Three blocks of online softmax; the reference is also held against plain softmax in double. K
 * [n, dk] goes into blocks whose places that no position has hold NaN, which must not matter. */
static void check_attend(checker *c, bool is_f16) {
    static const int32_t dims[][2] = {{8, 8}, {64, 64}, {50, 34}, {128, 128}};
    static const int32_t counts[] = {1, 5, 16, 63, 64};
    enum { N_Q = 15, BLOCKS = 3, MAX = 128 };
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 5; j++) {
            int32_t dk = dims[i][0], dv = dims[i][1], last = counts[j];
            int32_t n = (BLOCKS - 1) * DPI_KV_BLOCK + last;
            float *q = randoms(c, N_Q * dk, 2), *k = randoms(c, (int64_t)n * dk, 1);
            float *v = randoms(c, (int64_t)n * dv, 1), scale = 1.0f / sqrtf((float)dk);
            uint16_t *kh = zeros((int64_t)n * dk, 2), *vh = zeros((int64_t)n * dv, 2);
            c->ref.f32_to_f16(kh, k, (int64_t)n * dk);
            c->ref.f32_to_f16(vh, v, (int64_t)n * dv);
            if (is_f16) { /* the exact answer is about what is stored */
                c->ref.f16_to_f32(k, kh, (int64_t)n * dk);
                c->ref.f16_to_f32(v, vh, (int64_t)n * dv);
            }
            int64_t n_blocked = (int64_t)BLOCKS * DPI_KV_BLOCK * dk;
            float *kb = zeros(n_blocked, 4);
            uint16_t *khb = zeros(n_blocked, 2);
            for (int64_t a = 0; a < n_blocked; a++)
                kb[a] = NAN;
            for (int32_t a = 0; a < n; a++)
                for (int32_t b = 0; b < dk; b++)
                    kb[dpi_kv_k_at(a, b, dk)] = k[a * dk + b];
            c->ref.f32_to_f16(khb, kb, n_blocked);
            float acc[2][N_Q * MAX] = {{0}}, m[2][N_Q], l[2][N_Q] = {{0}};
            for (int h = 0; h < N_Q; h++)
                m[0][h] = m[1][h] = -INFINITY;
            for (int b = 0; b < BLOCKS; b++)
                for (int t = 0; t < 2; t++) {
                    const dpi_kernels *f = t ? &c->ref : &c->isa;
                    int64_t at = b * DPI_KV_BLOCK;
                    int32_t count = b + 1 < BLOCKS ? DPI_KV_BLOCK : last;
                    if (is_f16)
                        f->attend_f16(acc[t], m[t], l[t], q, khb + at * dk, vh + at * dv, N_Q,
                                      count, dk, dv, scale, khb, vh);
                    else
                        f->attend_f32(acc[t], m[t], l[t], q, kb + at * dk, v + at * dv, N_Q, count,
                                      dk, dv, scale, kb, v);
                }
            for (int h = 0; h < N_Q; h++)
                for (int e = 0; e < dv; e++) {
                    float exact = attended(q + h * dk, k, v + e, n, dk, dv, scale);
                    for (int t = 0; t < 2; t++) {
                        float got = acc[t][h * dv + e] / l[t][h];
                        assert_close(&got, &exact, 1, 4, t ? 4 * EPS : 64 * EPS);
                    }
                }
            free(q), free(k), free(v), free(kh), free(vh), free(kb), free(khb);
        }
}

static void check_attend_f32(const family_kernel *f, checker *c) {
    (void)f;
    check_attend(c, false);
}

static void check_attend_f16(const family_kernel *f, checker *c) {
    (void)f;
    check_attend(c, true);
}

enum { HEADS = TIMED_HEADS, DIM = TIMED_HEAD_DIM };

static void call_attend_f32(const family_kernel *f, const timed *t) {
    float m[HEADS] = {0}, l[HEADS] = {0};
    const float *k = t->x + TIMED_N_IN, *v = k + DPI_KV_BLOCK * DIM;
    (void)f;
    t->k->attend_f32(t->y, m, l, t->x, k, v, HEADS, DPI_KV_BLOCK, DIM, DIM, 0.125f, k, v);
}

static void call_attend_f16(const family_kernel *f, const timed *t) {
    float m[HEADS] = {0}, l[HEADS] = {0};
    const uint16_t *k = t->f16, *v = k + DPI_KV_BLOCK * DIM;
    (void)f;
    t->k->attend_f16(t->y, m, l, t->x, k, v, HEADS, DPI_KV_BLOCK, DIM, DIM, 0.125f, k, v);
}

const family_kernel family_attend_f32 = {.name = "attend_f32",
                                         .check = check_attend_f32,
                                         .call = call_attend_f32,
                                         .ops = 4.0 * HEADS * DPI_KV_BLOCK * DIM,
                                         .bytes = 8.0 * DPI_KV_BLOCK * DIM};

const family_kernel family_attend_f16 = {.name = "attend_f16",
                                         .check = check_attend_f16,
                                         .call = call_attend_f16,
                                         .ops = 4.0 * HEADS * DPI_KV_BLOCK * DIM,
                                         .bytes = 4.0 * DPI_KV_BLOCK * DIM};
