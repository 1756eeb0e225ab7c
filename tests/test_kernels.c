/* Every kernel of every ISA against ref.c, on sizes that are odd on purpose; and its purity: a
 * row's bits do not depend on how many rows are computed with it. */
#include <math.h>

#include "kernels.h"
#include "quant.h"
#include "support.h"

static dpi_kernels ref, isa; /* filled once, by setup */
static uint64_t seed;

static int setup(void **state) {
    (void)state;
    dpi_error err;
    assert_ok(dpi_kernels_init(&ref, DPI_ISA_REF, &err), &err);
    assert_ok(dpi_kernels_init(&isa, forced_isa(), &err), &err);
    seed = 1;
    return 0;
}

static float *randoms(int64_t n, double scale) {
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * random_normal(&seed));
    return x;
}

static void *zeros(int64_t n, size_t size) {
    void *p = calloc((size_t)n + 1, size);
    assert_non_null(p);
    return p;
}

/* |a - b| <= tolerance * scale, elementwise; scale is what the errors are relative to. */
static void assert_close(const float *a, const float *b, int64_t n, double scale,
                         double tolerance) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * scale))
            fail_msg("element %lld of %lld: %.9g against %.9g of ref (allowed %.3g)", (long long)i,
                     (long long)n, (double)a[i], (double)b[i], tolerance * scale);
}

static const int32_t lengths[] = {1, 2, 7, 8, 15, 16, 17, 31, 64, 100, 172, 515, 2048};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };
static const double EPS = 1.1920929e-7;

static void check_rmsnorm(void **state) {
    (void)state;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(n, 3), *w = randoms(n, 1), *a = zeros(n, 4), *b = zeros(n, 4);
        isa.rmsnorm(a, x, w, n, 1e-5f);
        ref.rmsnorm(b, x, w, n, 1e-5f);
        /* A sum of n squares is off by at most n eps / 2, here relative to results of order 1. */
        assert_close(a, b, n, 8, EPS * (n / 2.0 + 4));
        isa.rmsnorm(x, x, w, n, 1e-5f); /* in place */
        assert_memory_equal(x, a, (size_t)n * sizeof *a);
        free(x), free(w), free(a), free(b);
    }
}

static void check_rope(void **state) {
    (void)state;
    enum { HEADS = 3, DIM = 50 };
    for (int32_t n_rot = 2; n_rot <= DIM; n_rot += 8) {
        float *a = randoms(HEADS * DIM, 1), *b = zeros(HEADS * DIM, 4), cs[DIM];
        memcpy(b, a, HEADS * DIM * sizeof *a);
        for (int32_t i = 0; i < n_rot; i += 2) {
            cs[i] = (float)cos(0.3 * i);
            cs[i + 1] = (float)sin(0.3 * i);
        }
        isa.rope(a, cs, HEADS, DIM, n_rot);
        ref.rope(b, cs, HEADS, DIM, n_rot);
        assert_close(a, b, HEADS * DIM, 4, EPS);
        free(a), free(b);
    }
}

static void check_add(void **state) {
    (void)state;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(n, 1), *a = randoms(n + 1, 1), *b = zeros(n + 1, 4);
        memcpy(b, a, (size_t)(n + 1) * sizeof *a);
        isa.add(a, x, n);
        ref.add(b, x, n);
        assert_memory_equal(a, b, (size_t)(n + 1) * sizeof *a); /* nothing beyond n */
        free(x), free(a), free(b);
    }
}

static void check_swiglu(void **state) {
    (void)state;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *a = randoms(n, 6), *u = randoms(n, 1), *b = zeros(n, 4);
        a[0] = i % 3 == 0 ? -200.0f : i % 3 == 1 ? 200.0f : 0.0f; /* exp over- and underflows */
        memcpy(b, a, (size_t)n * sizeof *a);
        isa.swiglu(a, u, n);
        ref.swiglu(b, u, n);
        for (int32_t j = 0; j < n; j++)
            assert_close(a + j, b + j, 1, fabs((double)b[j]) + 1e-30, 8 * EPS);
        free(a), free(u), free(b);
    }
}

static void check_f16_to_f32(void **state) {
    (void)state;
    enum { ALL = 65536 };
    uint16_t *x = zeros(ALL, 2);
    float *a = zeros(ALL, 4), *b = zeros(ALL, 4);
    for (int i = 0; i < ALL; i++)
        x[i] = (uint16_t)i;
    isa.f16_to_f32(a, x, ALL);
    ref.f16_to_f32(b, x, ALL);
    for (int i = 0; i < ALL; i++)
        assert_true(isnan(a[i]) ? isnan(b[i]) : memcmp(&a[i], &b[i], 4) == 0);
    for (int n = 1; n < 40; n++) {
        memset(a, 0, 64 * 4);
        isa.f16_to_f32(a, x + 15360, n);
        assert_memory_equal(a, b + 15360, (size_t)n * 4);
        assert_true(a[n] == 0);
    }
    free(x), free(a), free(b);
}

static void check_f32_to_f16(void **state) {
    (void)state;
    enum { N = 200000 };
    float *x = zeros(N, 4);
    uint16_t *a = zeros(N, 2), *b = zeros(N, 2);
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)random_u64(&seed);
        if (i % 2) /* around the range of a half, where rounding and subnormals are */
            bits = (bits & 0x83ffffff) | (uint32_t)(95 + random_below(&seed, 50)) << 23;
        memcpy(&x[i], &bits, 4);
    }
    isa.f32_to_f16(a, x, N);
    ref.f32_to_f16(b, x, N);
    for (int i = 0; i < N; i++)
        if (isnan(x[i]))
            assert_true((a[i] & 0x7fff) > 0x7c00 && (b[i] & 0x7fff) > 0x7c00);
        else
            assert_int_equal(a[i], b[i]);
    for (int n = 1; n < 40; n++) {
        memset(a, 0, 64 * 2);
        isa.f32_to_f16(a, x, n);
        assert_int_equal(a[n], 0);
    }
    free(x), free(a), free(b);
}

/* Rows computed together have the bits of rows computed alone. */
static void assert_rows_pure(const float *all, const float *alone, int32_t n_rows, int32_t n_out) {
    assert_memory_equal(all, alone, (size_t)n_rows * (size_t)n_out * sizeof *all);
}

static void check_matmul_f32(void **state) {
    (void)state;
    static const int32_t rows[] = {1, 2, 3, 4, 5, 9, 33, 64};
    for (int i = 0; i < N_LENGTHS; i++)
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
            int32_t n_in = lengths[i], n_rows = rows[j], n_out = 1 + random_below(&seed, 23);
            float *x = randoms((int64_t)n_rows * n_in, 1), *w = randoms((int64_t)n_out * n_in, 1);
            float *a = zeros((int64_t)n_rows * n_out, 4), *b = zeros((int64_t)n_rows * n_out, 4);
            isa.matmul_f32(a, n_out, x, n_in, n_rows, w, n_in, n_out);
            ref.matmul_f32(b, n_out, x, n_in, n_rows, w, n_in, n_out);
            assert_close(a, b, (int64_t)n_rows * n_out, sqrt(n_in) * 6, EPS * (n_in / 16.0 + 8));
            for (int32_t r = 0; r < n_rows; r++)
                isa.matmul_f32(b + (int64_t)r * n_out, n_out, x + (int64_t)r * n_in, n_in, 1, w,
                               n_in, n_out);
            assert_rows_pure(a, b, n_rows, n_out);
            free(x), free(w), free(a), free(b);
        }
}

static void check_quantize_q8(void **state) {
    (void)state;
    enum { N = 32 * 300 };
    float *x = randoms(N, 2), *da = zeros(N / 32, 4), *db = zeros(N / 32, 4);
    int8_t *qa = zeros(N, 1), *qb = zeros(N, 1);
    memset(x, 0, 32 * sizeof *x);                     /* a block of zeros */
    for (int i = 32; i < 64; i++)
        x[i] = 1e-38f * (float)(i - 40);              /* a block too small to scale */
    x[64] = NAN, x[97] = -127.0f, x[98] = 0.5f, x[99] = 1.5f, x[100] = -2.5f;
    isa.quantize_q8(qa, da, x, N);
    ref.quantize_q8(qb, db, x, N);
    assert_memory_equal(qa, qb, N);
    assert_memory_equal(da, db, N / 32 * sizeof *da);
    /* The definition, in double: within half a step. */
    for (int i = 65; i < N; i++)
        assert_true(fabs((double)x[i] - (double)db[i / 32] * qb[i]) <=
                    0.5 * (double)db[i / 32] * (1 + 1e-4) + 1e-36);
    free(x), free(da), free(db), free(qa), free(qb);
}

static void check_matmul_q8_0(void **state) {
    (void)state;
    static const int32_t widths[] = {32, 64, 96, 256, 2048};
    static const int32_t rows[] = {1, 2, 3, 4, 5, 9, 33};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
            int32_t n_in = widths[i], n_rows = rows[j], n_out = 1 + random_below(&seed, 11);
            int64_t n_blocks = n_in / 32;
            float *x = randoms((int64_t)n_rows * n_in, 1), *d = zeros(n_rows * n_blocks, 4);
            int8_t *q = zeros((int64_t)n_rows * n_in, 1);
            unsigned char *w = zeros(n_out * n_blocks * 34, 1);
            for (int64_t b = 0; b < n_out * n_blocks; b++) {
                uint16_t scale = dpi_f32_to_f16((float)(0.02 * random_normal(&seed)));
                memcpy(w + b * 34, &scale, 2);
                for (int k = 0; k < 32; k++) /* -128 too: llama.cpp never writes it, a file may */
                    w[b * 34 + 2 + k] = (unsigned char)random_u64(&seed);
            }
            isa.quantize_q8(q, d, x, (int64_t)n_rows * n_in);
            float *a = zeros((int64_t)n_rows * n_out, 4), *b = zeros((int64_t)n_rows * n_out, 4);
            isa.matmul_q8_0(a, n_out, q, d, n_rows, w, n_in, n_out);
            ref.matmul_q8_0(b, n_out, q, d, n_rows, w, n_in, n_out);
            assert_close(a, b, (int64_t)n_rows * n_out, sqrt(n_in) * 12,
                         EPS * ((double)n_blocks + 8));
            for (int32_t r = 0; r < n_rows; r++)
                isa.matmul_q8_0(b + (int64_t)r * n_out, n_out, q + (int64_t)r * n_in,
                                d + r * n_blocks, 1, w, n_in, n_out);
            assert_rows_pure(a, b, n_rows, n_out);
            free(x), free(d), free(q), free(w), free(a), free(b);
        }
}

/* Three blocks of online softmax; the reference is also held against plain softmax in double. */
static void check_attend(int half) {
    static const int32_t dims[][2] = {{8, 8}, {64, 64}, {50, 34}, {128, 128}};
    static const int32_t counts[] = {1, 5, 16, 63, 64};
    enum { N_Q = 4, BLOCKS = 3, MAX = 128 };
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 5; j++) {
            int32_t dk = dims[i][0], dv = dims[i][1], last = counts[j];
            int32_t n = (BLOCKS - 1) * DPI_KV_BLOCK + last;
            float *q = randoms(N_Q * dk, 2), *k = randoms((int64_t)n * dk, 1);
            float *v = randoms((int64_t)n * dv, 1), scale = 1.0f / sqrtf((float)dk);
            uint16_t *kh = zeros((int64_t)n * dk, 2), *vh = zeros((int64_t)n * dv, 2);
            ref.f32_to_f16(kh, k, (int64_t)n * dk);
            ref.f32_to_f16(vh, v, (int64_t)n * dv);
            if (half) { /* the exact answer is about what is stored */
                ref.f16_to_f32(k, kh, (int64_t)n * dk);
                ref.f16_to_f32(v, vh, (int64_t)n * dv);
            }
            float acc[2][N_Q * MAX] = {{0}}, m[2][N_Q], l[2][N_Q] = {{0}};
            for (int h = 0; h < N_Q; h++)
                m[0][h] = m[1][h] = -INFINITY;
            for (int b = 0; b < BLOCKS; b++)
                for (int t = 0; t < 2; t++) {
                    const dpi_kernels *f = t ? &ref : &isa;
                    int64_t at = b * DPI_KV_BLOCK;
                    int32_t count = b + 1 < BLOCKS ? DPI_KV_BLOCK : last;
                    if (half)
                        f->attend_f16(acc[t], m[t], l[t], q, kh + at * dk, vh + at * dv, N_Q,
                                      count, dk, dv, scale);
                    else
                        f->attend_f32(acc[t], m[t], l[t], q, k + at * dk, v + at * dv, N_Q, count,
                                      dk, dv, scale);
                }
            for (int h = 0; h < N_Q; h++)
                for (int e = 0; e < dv; e++) {
                    double sum = 0, weight = 0;
                    for (int32_t a = 0; a < n; a++) {
                        double s = 0;
                        for (int32_t b = 0; b < dk; b++)
                            s += (double)q[h * dk + b] * (double)k[a * dk + b];
                        sum += exp(s * (double)scale) * (double)v[a * dv + e];
                        weight += exp(s * (double)scale);
                    }
                    float exact = (float)(sum / weight);
                    for (int t = 0; t < 2; t++) {
                        float got = acc[t][h * dv + e] / l[t][h];
                        assert_close(&got, &exact, 1, 4, t ? 4 * EPS : 64 * EPS);
                    }
                }
            free(q), free(k), free(v), free(kh), free(vh);
        }
}

static void check_attend_f32(void **state) {
    (void)state;
    check_attend(0);
}

static void check_attend_f16(void **state) {
    (void)state;
    check_attend(1);
}

static void test_isa_names(void **state) {
    (void)state;
    dpi_error err;
    int32_t id;
    assert_ok(dpi_isa_parse("avx2", &id, &err), &err);
    assert_int_equal(id, DPI_ISA_AVX2);
    assert_string_equal(dpi_isa_name(DPI_ISA_AVX512), "avx512");
    assert_error(dpi_isa_parse("sse9", &id, &err), DPI_STATUS_ARG, &err, "'sse9'");
    dpi_kernels k;
    assert_error(dpi_kernels_init(&k, 17, &err), DPI_STATUS_ARG, &err, "isa is 17");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isa_names),
/* A kernel without a check does not compile. */
#define KERNEL(name, parameters) cmocka_unit_test(check_##name),
#include "kernels.def"
#undef KERNEL
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
