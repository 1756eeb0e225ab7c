/* family_vectors.c - kernels on vectors: norms, RoPE, gates, soft caps, conversions. */
#include <math.h>

#include "tests/kernels/family.h"

enum { N = TIMED_N_IN };

CHECK(sum_squares) {
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 3), a = 0, b = 0;
        c->isa.sum_squares(&a, x, n);
        c->ref.sum_squares(&b, x, n);
        assert_close(&a, &b, 1, (double)b, EPS * (n / 2.0 + 4)); /* all terms are positive */
        free(x);
    }
}
KERNEL_OF(sum_squares, 2.0 * N, 4.0 * N, t->y, t->x, N)

CHECK(scale) {
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 3), *w = randoms(c, n, 1);
        pair y = pair_make(1, n, sizeof *x, NULL);
        BOTH(c, y, scale, x, w, 0.37f, n);
        pair_assert_equal(&y);
        free(x), free(w), pair_free(&y);
    }
}
KERNEL_OF(scale, 2.0 * N, 12.0 * N, t->y, t->x, t->x + N, 0.5f, N)

CHECK(rope) {
    enum { HEADS = 3, DIM = 50 };
    for (int32_t n_rot = 2; n_rot <= DIM; n_rot += 8) {
        float *x = randoms(c, HEADS * DIM, 1), cs[DIM];
        pair y = pair_make(1, HEADS * DIM, sizeof *x, x);
        for (int32_t i = 0; i < n_rot; i++)
            cs[i] = (float)(i % 2 ? sin(0.3 * (i - 1)) : cos(0.3 * i));
        BOTH(c, y, rope, cs, HEADS, DIM, n_rot);
        assert_close(y.isa.at, y.ref.at, HEADS * DIM, 4, EPS);
        free(x), pair_free(&y);
    }
}
KERNEL_OF(rope, 3.0 * N, 8.0 * N, t->y, t->x, N / TIMED_HEAD_DIM, TIMED_HEAD_DIM, TIMED_HEAD_DIM)

/* The rotation of neighbours, of dimensions in another order. */
CHECK(rope_halves) {
    enum { HEADS = 3, DIM = 50 };
    for (int32_t n_rot = 2; n_rot <= DIM; n_rot += 8) {
        const int32_t half = n_rot / 2;
        float *x = randoms(c, HEADS * DIM, 1), cs[DIM], by_pairs[DIM], wanted[HEADS * DIM];
        pair y = pair_make(1, HEADS * DIM, sizeof *x, x);
        memcpy(wanted, x, sizeof wanted);
        for (int32_t i = 0; i < half; i++) {
            by_pairs[2 * i] = cs[i] = (float)cos(0.3 * i);
            by_pairs[2 * i + 1] = cs[half + i] = (float)sin(0.3 * i);
            for (int32_t h = 0; h < HEADS * DIM; h += DIM)
                wanted[h + 2 * i] = x[h + i], wanted[h + 2 * i + 1] = x[h + half + i];
        }
        c->ref.rope(wanted, by_pairs, HEADS, DIM, n_rot);
        BOTH(c, y, rope_halves, cs, HEADS, DIM, n_rot);
        const float *got = y.isa.at, *ref = y.ref.at;
        assert_close(got, ref, HEADS * DIM, 4, EPS);
        for (int32_t i = 0; i < HEADS * DIM; i++) {
            const int32_t d = i % DIM;
            const int32_t at = d >= n_rot ? d : d < half ? 2 * d : 2 * (d - half) + 1;
            assert_true(ref[i] == wanted[i - d + at]);
        }
        free(x), pair_free(&y);
    }
}
KERNEL_OF(rope_halves, 3.0 * N, 8.0 * N, t->y, t->x, N / TIMED_HEAD_DIM, TIMED_HEAD_DIM,
          TIMED_HEAD_DIM)

CHECK(add) {
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 1), *to = randoms(c, n, 1);
        pair y = pair_make(1, n, sizeof *x, to);
        BOTH(c, y, add, x, n);
        pair_assert_equal(&y);
        free(x), free(to), pair_free(&y);
    }
}
KERNEL_OF(add, N, 12.0 * N, t->y, t->x, N)

/* A gate, and its definition on one number. */
static void check_gate(checker *c, void (*isa)(float *, const float *, int64_t),
                       void (*ref)(float *, const float *, int64_t), double (*exact)(double),
                       double limit) {
    static const float first[] = {-200.0f, 200.0f, 0.0f}; /* exp over- and underflows */
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *g = randoms(c, n, 6), *u = randoms(c, n, 1);
        g[0] = first[i % 3];
        pair y = pair_make(1, n, sizeof *g, g);
        float *a = y.isa.at, *b = y.ref.at;
        isa(a, u, n), ref(b, u, n);
        for (int32_t j = 0; j < n; j++) {
            const float wanted = (float)(exact((double)g[j]) * (double)u[j]);
            const double size = fabs((double)b[j]) + 1e-30;
            assert_close(a + j, b + j, 1, size, limit);
            assert_close(b + j, &wanted, 1, fabs((double)u[j]) + size, 4 * EPS);
        }
        free(g), free(u), pair_free(&y);
    }
}

static double silu(double z) { return z / (1 + exp(-z)); }
static double gelu(double z) {
    return z / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (z + 0.044715 * z * z * z)));
}

CHECK(swiglu) { check_gate(c, c->isa.swiglu, c->ref.swiglu, silu, 8 * EPS); }
KERNEL_OF(swiglu, 5.0 * N, 12.0 * N, t->y, t->x, N)

/* An error of the exponent counts as often as it is large: where the gate is nearly closed. */
CHECK(geglu) { check_gate(c, c->isa.geglu, c->ref.geglu, gelu, 64 * EPS); }
KERNEL_OF(geglu, 9.0 * N, 12.0 * N, t->y, t->x, N)

CHECK(soft_cap) {
    static const float first[] = {-1e30f, 1e30f, 0.0f};
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 6);
        x[0] = first[i % 3];
        pair y = pair_make(1, n, sizeof *x, x);
        BOTH(c, y, soft_cap, 3.0f, n);
        const float *isa = y.isa.at, *ref = y.ref.at;
        for (int32_t j = 0; j < n; j++) {
            const float wanted = (float)(3 * tanh((double)x[j] / 3));
            assert_close(isa + j, &wanted, 1, fabs((double)wanted) + 1e-30, 16 * EPS);
            assert_close(ref + j, &wanted, 1, fabs((double)wanted) + 1e-30, EPS);
        }
        free(x), pair_free(&y);
    }
}
KERNEL_OF(soft_cap, 20.0 * N, 8.0 * N, t->y, 30.0f, N)

CHECK(f16_to_f32) {
    enum { ALL = 65536 };
    uint16_t *x = zeros(ALL, sizeof *x);
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    pair y = pair_make(1, ALL, sizeof(float), NULL);
    BOTH(c, y, f16_to_f32, x, ALL);
    const float *isa = y.isa.at, *ref = y.ref.at;
    for (int i = 0; i < ALL; i++)
        assert_true(isnan(isa[i]) ? isnan(ref[i]) : memcmp(&isa[i], &ref[i], sizeof *isa) == 0);
    for (int n = 1; n < 40; n++) {
        pair some = pair_make(1, n, sizeof *isa, NULL);
        BOTH(c, some, f16_to_f32, x + 15360, n);
        pair_assert_equal(&some);
        pair_free(&some);
    }
    free(x), pair_free(&y);
}
KERNEL_OF(f16_to_f32, N, 6.0 * N, t->y, t->f16, N)

CHECK(f32_to_f16) {
    enum { ALL = 200000 };
    float *x = zeros(ALL, sizeof *x);
    for (int i = 0; i < ALL; i++) {
        uint32_t bits = (uint32_t)random_u64(&c->seed);
        if (i % 2) /* around the range of an f16, where rounding and subnormals are */
            bits = (bits & 0x83ffffff) | (uint32_t)(95 + random_below(&c->seed, 50)) << 23;
        memcpy(&x[i], &bits, sizeof bits);
    }
    pair y = pair_make(1, ALL, sizeof(uint16_t), NULL);
    BOTH(c, y, f32_to_f16, x, ALL);
    const uint16_t *isa = y.isa.at, *ref = y.ref.at;
    for (int i = 0; i < ALL; i++)
        if (isnan(x[i]))
            assert_true((isa[i] & 0x7fff) > 0x7c00 && (ref[i] & 0x7fff) > 0x7c00);
        else
            assert_int_equal(isa[i], ref[i]);
    for (int n = 1; n < 40; n++) { /* its guards */
        pair some = pair_make(1, n, sizeof *isa, NULL);
        c->isa.f32_to_f16(some.isa.at, x, n);
        pair_free(&some);
    }
    free(x), pair_free(&y);
}
KERNEL_OF(f32_to_f16, N, 6.0 * N, t->f16, t->x, N)
