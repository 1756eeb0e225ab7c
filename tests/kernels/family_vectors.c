/* family_vectors.c - kernels on vectors: norms, RoPE, SwiGLU, conversions. */
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

CHECK(swiglu) {
    static const float first[] = {-200.0f, 200.0f, 0.0f}; /* exp over- and underflows */
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *g = randoms(c, n, 6), *u = randoms(c, n, 1);
        g[0] = first[i % 3];
        pair y = pair_make(1, n, sizeof *g, g);
        BOTH(c, y, swiglu, u, n);
        const float *isa = y.isa.at, *ref = y.ref.at;
        for (int32_t j = 0; j < n; j++)
            assert_close(isa + j, ref + j, 1, fabs((double)ref[j]) + 1e-30, 8 * EPS);
        free(g), free(u), pair_free(&y);
    }
}
KERNEL_OF(swiglu, 5.0 * N, 12.0 * N, t->y, t->x, N)

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
