/* family_vectors.c - kernels on vectors: norms, RoPE, SwiGLU, conversions. */
#include <math.h>

#include "tests/kernels/family.h"

enum { N = TIMED_N_IN };

/* ---- sum_squares ----------------------------------------------------------------------------- */

static void check_sum_squares(const family_kernel *f, checker *c) {
    (void)f;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 3), a = 0, b = 0;
        c->isa.sum_squares(&a, x, n);
        c->ref.sum_squares(&b, x, n);
        assert_close(&a, &b, 1, (double)b, EPS * (n / 2.0 + 4)); /* all terms are positive */
        free(x);
    }
}

static void call_sum_squares(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->sum_squares(t->y, t->x, N);
}

const family_kernel family_sum_squares = {.name = "sum_squares",
                                          .check = check_sum_squares,
                                          .call = call_sum_squares,
                                          .ops = 2.0 * N,
                                          .bytes = 4.0 * N};

/* ---- scale ----------------------------------------------------------------------------------- */

static void check_scale(const family_kernel *f, checker *c) {
    (void)f;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 3), *w = randoms(c, n, 1);
        rect a = rect_make(1, n, sizeof *x), b = rect_make(1, n, sizeof *x);
        c->isa.scale(a.at, x, w, 0.37f, n);
        c->ref.scale(b.at, x, w, 0.37f, n);
        rect_assert_equal(&a, &b);
        free(x), free(w), rect_free(&a), rect_free(&b);
    }
}

static void call_scale(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->scale(t->y, t->x, t->x + N, 0.5f, N);
}

const family_kernel family_scale = {
    .name = "scale", .check = check_scale, .call = call_scale, .ops = 2.0 * N, .bytes = 12.0 * N};

/* ---- rope ------------------------------------------------------------------------------------ */

static void check_rope(const family_kernel *f, checker *c) {
    (void)f;
    enum { HEADS = 3, DIM = 50 };
    for (int32_t n_rot = 2; n_rot <= DIM; n_rot += 8) {
        float *x = randoms(c, HEADS * DIM, 1), cs[DIM];
        rect a = rect_make(1, HEADS * DIM, sizeof *x), b = rect_make(1, HEADS * DIM, sizeof *x);
        memcpy(a.at, x, HEADS * DIM * sizeof *x);
        memcpy(b.at, x, HEADS * DIM * sizeof *x);
        for (int32_t i = 0; i < n_rot; i += 2) {
            cs[i] = (float)cos(0.3 * i);
            cs[i + 1] = (float)sin(0.3 * i);
        }
        c->isa.rope(a.at, cs, HEADS, DIM, n_rot);
        c->ref.rope(b.at, cs, HEADS, DIM, n_rot);
        assert_close(a.at, b.at, HEADS * DIM, 4, EPS);
        free(x), rect_free(&a), rect_free(&b);
    }
}

static void call_rope(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->rope(t->y, t->x, N / TIMED_HEAD_DIM, TIMED_HEAD_DIM, TIMED_HEAD_DIM);
}

const family_kernel family_rope = {
    .name = "rope", .check = check_rope, .call = call_rope, .ops = 3.0 * N, .bytes = 8.0 * N};

/* ---- add ------------------------------------------------------------------------------------- */

static void check_add(const family_kernel *f, checker *c) {
    (void)f;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(c, n, 1), *y = randoms(c, n, 1);
        rect a = rect_make(1, n, sizeof *x), b = rect_make(1, n, sizeof *x);
        memcpy(a.at, y, (size_t)n * sizeof *y);
        memcpy(b.at, y, (size_t)n * sizeof *y);
        c->isa.add(a.at, x, n);
        c->ref.add(b.at, x, n);
        rect_assert_equal(&a, &b);
        free(x), free(y), rect_free(&a), rect_free(&b);
    }
}

static void call_add(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->add(t->y, t->x, N);
}

const family_kernel family_add = {
    .name = "add", .check = check_add, .call = call_add, .ops = N, .bytes = 12.0 * N};

/* ---- swiglu ---------------------------------------------------------------------------------- */

static void check_swiglu(const family_kernel *f, checker *c) {
    (void)f;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *g = randoms(c, n, 6), *u = randoms(c, n, 1);
        rect a = rect_make(1, n, sizeof *g), b = rect_make(1, n, sizeof *g);
        g[0] = i % 3 == 0 ? -200.0f : i % 3 == 1 ? 200.0f : 0.0f; /* exp over- and underflows */
        memcpy(a.at, g, (size_t)n * sizeof *g);
        memcpy(b.at, g, (size_t)n * sizeof *g);
        c->isa.swiglu(a.at, u, n);
        c->ref.swiglu(b.at, u, n);
        const float *x = a.at, *y = b.at;
        for (int32_t j = 0; j < n; j++)
            assert_close(x + j, y + j, 1, fabs((double)y[j]) + 1e-30, 8 * EPS);
        free(g), free(u), rect_free(&a), rect_free(&b);
    }
}

static void call_swiglu(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->swiglu(t->y, t->x, N);
}

const family_kernel family_swiglu = {.name = "swiglu",
                                     .check = check_swiglu,
                                     .call = call_swiglu,
                                     .ops = 5.0 * N,
                                     .bytes = 12.0 * N};

/* ---- f16_to_f32, f32_to_f16 ------------------------------------------------------------------ */

static void check_f16_to_f32(const family_kernel *f, checker *c) {
    (void)f;
    enum { ALL = 65536 };
    uint16_t *x = zeros(ALL, sizeof *x);
    rect ra = rect_make(1, ALL, sizeof(float)), rb = rect_make(1, ALL, sizeof(float));
    float *a = ra.at, *b = rb.at;
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    c->isa.f16_to_f32(a, x, ALL);
    c->ref.f16_to_f32(b, x, ALL);
    for (int i = 0; i < ALL; i++)
        assert_true(isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], sizeof *a) == 0);
    for (int n = 1; n < 40; n++) {
        rect some = rect_make(1, n, sizeof *a);
        c->isa.f16_to_f32(some.at, x + 15360, n);
        assert_memory_equal(some.at, b + 15360, (size_t)n * sizeof *b);
        rect_free(&some);
    }
    free(x), rect_free(&ra), rect_free(&rb);
}

static void call_f16_to_f32(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->f16_to_f32(t->y, t->f16, N);
}

const family_kernel family_f16_to_f32 = {.name = "f16_to_f32",
                                         .check = check_f16_to_f32,
                                         .call = call_f16_to_f32,
                                         .ops = N,
                                         .bytes = 6.0 * N};

static void check_f32_to_f16(const family_kernel *f, checker *c) {
    (void)f;
    enum { ALL = 200000 };
    float *x = zeros(ALL, sizeof *x);
    rect ra = rect_make(1, ALL, sizeof(uint16_t)), rb = rect_make(1, ALL, sizeof(uint16_t));
    uint16_t *a = ra.at, *b = rb.at;
    for (int i = 0; i < ALL; i++) {
        uint32_t bits = (uint32_t)random_u64(&c->seed);
        if (i % 2) /* around the range of an f16, where rounding and subnormals are */
            bits = (bits & 0x83ffffff) | (uint32_t)(95 + random_below(&c->seed, 50)) << 23;
        memcpy(&x[i], &bits, sizeof bits);
    }
    c->isa.f32_to_f16(a, x, ALL);
    c->ref.f32_to_f16(b, x, ALL);
    for (int i = 0; i < ALL; i++)
        if (isnan(x[i]))
            assert_true((a[i] & 0x7fff) > 0x7c00 && (b[i] & 0x7fff) > 0x7c00);
        else
            assert_int_equal(a[i], b[i]);
    for (int n = 1; n < 40; n++) {
        rect some = rect_make(1, n, sizeof *a);
        c->isa.f32_to_f16(some.at, x, n);
        rect_free(&some);
    }
    free(x), rect_free(&ra), rect_free(&rb);
}

static void call_f32_to_f16(const family_kernel *f, const timed *t) {
    (void)f;
    t->k->f32_to_f16(t->f16, t->x, N);
}

const family_kernel family_f32_to_f16 = {.name = "f32_to_f16",
                                         .check = check_f32_to_f16,
                                         .call = call_f32_to_f16,
                                         .ops = N,
                                         .bytes = 6.0 * N};
