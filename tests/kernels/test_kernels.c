/* Every kernel of every ISA against ref.c, on sizes that are odd on purpose; and its purity: a
 * row's bits do not depend on how many rows are computed with it. */
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"
#include "tests/kernels/check_sampler.h"
#include "tests/support/support.h"

static dpi_kernels ref, isa; /* filled once, by setup */
static const dpi_kernels *twin; /* products that have the bits of isa's; NULL: none */
static uint64_t seed;

void init_vnni_evex(dpi_kernels *k); /* vnni_evex.c */

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

static void check_sum_squares(void **state) {
    (void)state;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(n, 3), a = 0, b = 0;
        isa.sum_squares(&a, x, n);
        ref.sum_squares(&b, x, n);
        assert_close(&a, &b, 1, (double)b, EPS * (n / 2.0 + 4)); /* all terms are positive */
        free(x);
    }
}

static void check_scale(void **state) {
    (void)state;
    for (int i = 0; i < N_LENGTHS; i++) {
        int32_t n = lengths[i];
        float *x = randoms(n, 3), *w = randoms(n, 1), *a = zeros(n + 1, 4), *b = zeros(n + 1, 4);
        isa.scale(a, x, w, 0.37f, n);
        ref.scale(b, x, w, 0.37f, n);
        assert_memory_equal(a, b, (size_t)(n + 1) * sizeof *a);
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

/* Room for n_rows rows of n 8-bit activations. */
static dpi_q8 q8_alloc(int32_t n_rows, int64_t n) {
    int64_t blocks = n_rows * (n / 32);
    return (dpi_q8){zeros(blocks, sizeof(dpi_q8_plain)), zeros(blocks, sizeof(dpi_q8_sums)),
                    zeros(blocks, sizeof(dpi_q8_winograd))};
}

static void q8_free(dpi_q8 *x) { free(x->plain), free(x->sums), free(x->winograd); }

/* Value i of a row of a block of `rows` rows. */
static int8_t q8_value(const dpi_q8_plain *x, int32_t rows, int32_t row, int32_t i) {
    return ((const int8_t *)x[i / DPI_Q8_BLOCK * rows + row].q)[i % DPI_Q8_BLOCK];
}

/* Rows of x into blocks, as forward.c does. */
static void q8_fill(const dpi_kernels *k, dpi_q8 *to, const float *x, int32_t n_rows, int64_t n,
                    int32_t form) {
    for (int32_t first = 0, rows; first < n_rows; first += rows) {
        rows = dpi_row_block(n_rows, first);
        dpi_q8 block = dpi_q8_at(to, first, n);
        k->quantize_q8(&block, rows, x + first * n, n, n, form);
    }
}

static void test_row_blocks(void **state) {
    (void)state;
    for (int32_t n = 1; n < 200; n++) {
        int32_t least = n, most = 0;
        for (int32_t first = 0, count; first < n; first += count) {
            count = dpi_row_block(n, first);
            assert_true(count >= 1 && count <= DPI_ROW_BLOCK && first + count <= n);
            for (int32_t r = first; r < first + count; r++)
                assert_int_equal(dpi_row_block_first(n, r), first);
            least = count < least ? count : least;
            most = count > most ? count : most;
        }
        assert_true(most - least <= 1);
    }
}

/* The squared error of 32 values with scale d, in double. */
static double error_of(const float *x, double d) {
    double sum = 0;
    for (int i = 0; i < 32; i++) {
        double error = (double)x[i] - d * rint((double)x[i] / d);
        sum += error * error;
    }
    return sum;
}

/* d is the largest value over one of the numbers of levels, as good as the best of them. */
static void check_q8_scale(const float *x, double d, int32_t form) {
    const int32_t most = dpi_q8_most(form);
    double max = 0, least = INFINITY;
    for (int i = 0; i < 32; i++)
        max = fmax(max, fabs((double)x[i]));
    for (int32_t L = most; L > most - dpi_q8_levels(most); L--)
        least = fmin(least, error_of(x, max / L));
    assert_in_range((uint64_t)rint(max / d), most - dpi_q8_levels(most) + 1, most);
    assert_true(fabs(max / d - rint(max / d)) < 1e-4);
    if (error_of(x, d) > least * 1.01)
        fail_msg("scale %g: squared error %g, the least is %g", d, error_of(x, d), least);
}

static void check_quantize_to(int32_t form) {
    enum { ROWS = 11, N = 32 * 46 };
    const int32_t most = dpi_q8_most(form);
    float *x = randoms(ROWS * N, 2);
    memset(x, 0, 32 * sizeof *x); /* a sub-block of zeros */
    for (int i = 32; i < 64; i++)
        x[i] = 1e-38f * (float)(i - 40); /* one too small to scale */
    x[64] = NAN, x[97] = -127.0f, x[98] = 0.5f, x[99] = 1.5f, x[100] = -2.5f;
    dpi_q8 a = q8_alloc(ROWS, N), b = q8_alloc(ROWS, N);
    q8_fill(&isa, &a, x, ROWS, N, form);
    q8_fill(&ref, &b, x, ROWS, N, form);
    assert_memory_equal(a.plain, b.plain, ROWS * N / 32 * sizeof *a.plain);
    assert_memory_equal(a.sums, b.sums, ROWS * N / 32 * sizeof *a.sums);
    for (int32_t r = 0; r < ROWS; r++) { /* the definition, in double: within half a step */
        int32_t first = dpi_row_block_first(ROWS, r), rows = dpi_row_block(ROWS, first);
        dpi_q8 block = dpi_q8_at(&a, first, N);
        int sums[2] = {0};
        for (int i = 0; i < N; i++) {
            const dpi_q8_plain *at = &block.plain[i / 32 * rows + r - first];
            double d = (double)at->d;
            int q = q8_value(block.plain, rows, r - first, i);
            assert_in_range(q + most, 0, 2 * most);
            if (r > 0 || i > 64)
                assert_true(fabs((double)x[r * N + i] - d * q) <= 0.5 * d * (1 + 1e-4) + 1e-36);
            sums[i % 32 / 16] += q;
            if (i % 32 == 31) {
                if (r > 0 || i >= 96)
                    check_q8_scale(x + r * N + i - 31, d, form);
                const dpi_q8_sums *starts = &block.sums[i / 32 * rows + r - first];
                assert_int_equal(starts->start_32[0], DPI_ORIGIN_BITS - 32 * sums[0]);
                assert_int_equal(starts->start_32[1], DPI_ORIGIN_BITS - 32 * sums[1]);
                assert_int_equal(at->start_128, DPI_ORIGIN_BITS - 128 * (sums[0] + sums[1]));
                assert_true(starts->scaled == at->d * (float)(-sums[0] - sums[1]));
                sums[0] = sums[1] = 0;
            }
        }
    }
    free(x), q8_free(&a), q8_free(&b);
}

/* Sum of the products of sub-block b of row r with codes, as winograd_products_tmpl.h defines it:
 * in plain integers, from Winograd blocks. */
static int32_t winograd_sum(const dpi_q8 *x, int32_t rows, int32_t r, int32_t b,
                            const uint8_t *code, bool is_biased) {
    const dpi_q8_winograd *from = &x->winograd[b * rows + r];
    int32_t sum = (is_biased ? from->start_8 : from->start) - DPI_ORIGIN_BITS;
    uint8_t q[8][4];
    for (int step = 0; step < 8; step++)
        memcpy(q[step], &from->q[step], sizeof q[step]);
    for (int step = DPI_WINOGRAD_STEPS; step < 8; step++)
        for (int i = 0; i < 4; i++)
            sum += (int8_t)q[step][i] * code[4 * step + i];
    for (int step = 0; step < DPI_WINOGRAD_STEPS; step += 2)
        for (int i = 0; i < 4; i++) {
            int32_t c0 = code[4 * step + i], c1 = code[4 * step + 4 + i];
            int32_t even = q[step][i] + c1, odd = (int8_t)q[step + 1][i] + c0;
            assert_in_range(even, 0, 255);
            assert_in_range(odd + 128, 0, 255);
            sum += even * odd - (c1 + DPI_WINOGRAD_EVEN) * (c0 + DPI_WINOGRAD_ODD);
        }
    return sum;
}

static void check_winograd(void) {
    enum { ROWS = 24, N = 32 * 5 };
    float *x = randoms(ROWS * N, 2);
    for (int n_rows = 1; n_rows <= ROWS; n_rows++) {
        dpi_q8 a = q8_alloc(n_rows, N), b = q8_alloc(n_rows, N);
        q8_fill(&isa, &a, x, n_rows, N, n_rows % 2 ? DPI_Q8_BOTH : DPI_Q8_WINOGRAD);
        q8_fill(&ref, &b, x, n_rows, N, DPI_Q8_BOTH);
        assert_memory_equal(a.winograd, b.winograd, (size_t)(n_rows * N / 32) * sizeof *a.winograd);
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            rows = dpi_row_block(n_rows, first);
            dpi_q8 block = dpi_q8_at(&a, first, N), plain = dpi_q8_at(&b, first, N);
            for (int32_t i = 0; i < rows * N / 32; i++) {
                uint8_t code[32];
                int32_t sum = 0, at = i / rows, r = i % rows;
                for (int32_t k = 0; k < 32; k++) { /* some sub-blocks with the extremes alone */
                    code[k] = (uint8_t)random_below(&seed, 16);
                    code[k] = i % 3 ? code[k] : (uint8_t)(code[k] % 2 * 15);
                    sum += code[k] * q8_value(plain.plain, rows, r, at * 32 + k);
                }
                assert_int_equal(winograd_sum(&block, rows, r, at, code, false), sum);
                for (int32_t k = 0; k < 32; k++)
                    sum -= 8 * q8_value(plain.plain, rows, r, at * 32 + k);
                assert_int_equal(winograd_sum(&block, rows, r, at, code, true), sum);
            }
        }
        q8_free(&a), q8_free(&b);
    }
    free(x);
}

static void check_quantize_q8(void **state) {
    (void)state;
    check_quantize_to(DPI_Q8_PLAIN);
    check_quantize_to(DPI_Q8_NARROW);
    check_quantize_to(DPI_Q8_BOTH);
    check_winograd();
}

/* Random bytes as blocks of a type, but for the halves among them: scales of a usual size. */
static void random_blocks(uint32_t id, unsigned char *w, int64_t n_blocks) {
    static const struct {
        uint32_t id;
        int32_t halves[2]; /* offsets in a block; -1: none */
    } types[] = {
        {DPI_TYPE_Q8_0, {0, -1}},  {DPI_TYPE_Q4_0, {0, -1}},   {DPI_TYPE_Q4_1, {0, 2}},
        {DPI_TYPE_Q5_0, {0, -1}},  {DPI_TYPE_Q5_1, {0, 2}},    {DPI_TYPE_Q2_K, {80, 82}},
        {DPI_TYPE_Q3_K, {108, -1}}, {DPI_TYPE_Q4_K, {0, 2}},   {DPI_TYPE_Q5_K, {0, 2}},
        {DPI_TYPE_Q6_K, {208, -1}}, {DPI_TYPE_IQ4_NL, {0, -1}}, {DPI_TYPE_IQ4_XS, {0, -1}},
    };
    size_t t = 0;
    while (types[t].id != id)
        t++;
    int32_t bytes = dpi_type_find(id)->block_bytes;
    for (int64_t i = 0; i < n_blocks * bytes; i++)
        w[i] = (unsigned char)random_u64(&seed);
    for (int64_t b = 0; b < n_blocks; b++)
        for (int h = 0; h < 2; h++)
            if (types[t].halves[h] >= 0) {
                uint16_t half = dpi_f32_to_f16((float)(0.02 * random_normal(&seed)));
                memcpy(w + b * bytes + types[t].halves[h], &half, 2);
            }
}

static void check_matmul_q(uint32_t id) {
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 17, 32, 33, 70};
    const dpi_type *type = dpi_type_find(id);
    dpi_matmul_q_fn *fast = dpi_kernels_matmul_q(&isa, id), *slow = dpi_kernels_matmul_q(&ref, id);
    enum { MOST_BLOCKS = 4 };
    for (size_t j = 0; j < sizeof rows / sizeof rows[0] * MOST_BLOCKS; j++) {
        int32_t n_rows = rows[j / MOST_BLOCKS], n_blocks = 1 + (int32_t)j % MOST_BLOCKS;
        int32_t n_out = 1 + random_below(&seed, 40);
        int64_t n_in = n_blocks * type->block, row_bytes = n_blocks * type->block_bytes;
        int32_t n_panels = (n_out + DPI_PANEL_ROWS - 1) / DPI_PANEL_ROWS;
        unsigned char *plain = zeros(n_out * row_bytes, 1);
        unsigned char *packed = zeros(n_panels * DPI_PANEL_ROWS * row_bytes, 1), bytes[256];
        float *w = zeros(n_out * n_in, 4), *x = randoms(n_rows * n_in, 1);
        random_blocks(id, plain, (int64_t)n_out * n_blocks);
        type->dequantize(plain, w, n_out * n_in);
        for (int32_t g = 0; g < n_panels; g++) {
            int32_t left = n_out - g * DPI_PANEL_ROWS;
            dpi_panel_pack(type, plain + g * DPI_PANEL_ROWS * row_bytes,
                           left < DPI_PANEL_ROWS ? left : DPI_PANEL_ROWS, n_blocks,
                           packed + g * DPI_PANEL_ROWS * row_bytes);
        }
        for (int32_t o = 0; o < n_out; o++) /* every row can be read back */
            for (int32_t b = 0; b < n_blocks; b++) {
                dpi_panel_unpack(type, packed + o / DPI_PANEL_ROWS * DPI_PANEL_ROWS * row_bytes,
                                  o % DPI_PANEL_ROWS, b, 1, n_blocks, bytes);
                assert_memory_equal(bytes, plain + o * row_bytes + b * type->block_bytes,
                                    (size_t)type->block_bytes);
            }
        dpi_q8 q = q8_alloc(n_rows, n_in);
        const bool is_narrow = type->is_narrow;
        q8_fill(&isa, &q, x, n_rows, n_in, is_narrow ? DPI_Q8_BOTH : DPI_Q8_PLAIN);
        /* One column more than n_out: it must stay untouched. */
        int64_t stride = n_out + 1;
        float *a = zeros(n_rows * stride, 4), *b = zeros(n_rows * stride, 4);
        fast(a, stride, &q, n_rows, packed, n_in, n_out,
             &isa.tuning);
        if (twin) {
            dpi_kernels_matmul_q(twin, id)(b, stride, &q, n_rows, packed, n_in, n_out,
             &isa.tuning);
            assert_memory_equal(a, b, (size_t)(n_rows * stride) * 4);
        }
        if (is_narrow) { /* the same bits without Winograd products */
            dpi_q8 plain_q8 = q;
            plain_q8.winograd = NULL;
            fast(b, stride, &plain_q8, n_rows, packed, n_in, n_out,
             &isa.tuning);
            assert_memory_equal(a, b, (size_t)(n_rows * stride) * 4);
        }
        slow(b, stride, &q, n_rows, packed, n_in, n_out, &isa.tuning);
        for (int32_t r = 0; r < n_rows; r++) {
            assert_true(a[r * stride + n_out] == 0);
            for (int32_t o = 0; o < n_out; o++) {
                double power = 0; /* errors are relative to the terms, which may cancel */
                for (int64_t k = 0; k < n_in; k++)
                    power += fabs((double)w[o * n_in + k]);
                assert_close(a + r * stride + o, b + r * stride + o, 1, 128 * power / 32,
                             EPS * ((double)n_in / 32 + 8));
            }
        }
        for (int32_t r = 0; r < n_rows; r++) { /* alone, a row has the same bits */
            dpi_q8 one = q8_alloc(1, n_in);
            q8_fill(&isa, &one, x + r * n_in, 1, n_in, is_narrow ? DPI_Q8_BOTH : DPI_Q8_PLAIN);
            fast(b + r * stride, stride, &one, 1, packed, n_in, n_out,
             &isa.tuning);
            q8_free(&one);
        }
        assert_memory_equal(a, b, (size_t)(n_rows * stride) * 4);
        free(plain), free(packed), free(w), free(x), free(a), free(b), q8_free(&q);
    }
}

#define CHECK_Q(name, id)                           \
    static void check_matmul_##name(void **state) { \
        (void)state;                                \
        check_matmul_q(id);                         \
    }

/* vpdpbusd instead of two instructions: the same bits. */
static void test_vnni(void **state) {
    (void)state;
#if defined(__x86_64__)
    dpi_kernels vnni = isa, plain = isa, forced = isa;
    if (isa.isa != DPI_ISA_AVX2 || dpi_isa_best() != DPI_ISA_AVX512)
        skip(); /* without AVX-512, isa itself has them if the processor does */
    init_vnni_evex(&vnni);
    dpi_kernels_init_avx2_q(&plain);
    isa = plain;
    twin = &vnni;
    for (int32_t i = 0; dpi_type_at(i); i++)
        if (dpi_type_at(i)->product == DPI_PRODUCT_Q)
            check_matmul_q(dpi_type_at(i)->id);
    twin = NULL;
    isa = forced;
#endif
}

static void check_matmul_h(uint32_t id) {
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17, 33};
    const dpi_type *type = dpi_type_find(id);
    dpi_matmul_h_fn *fast = dpi_kernels_matmul_h(&isa, id), *slow = dpi_kernels_matmul_h(&ref, id);
    for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
        int32_t n_rows = rows[j], n_out = 1 + random_below(&seed, 40);
        int64_t n_in = 1 + random_below(&seed, 100), stride = n_out + 1; /* a column to spare */
        int32_t n_panels = (n_out + DPI_PANEL_ROWS - 1) / DPI_PANEL_ROWS;
        float *w = randoms(n_out * n_in, 1), *x = randoms(n_rows * n_in, 1);
        float *a = zeros(n_rows * stride, 4), *b = zeros(n_rows * stride, 4), *row = zeros(n_in, 4);
        uint16_t *plain = zeros(n_out * n_in, 2);
        unsigned char *packed = zeros(n_panels * DPI_PANEL_ROWS * n_in, 2);
        for (int64_t i = 0; i < n_out * n_in; i++) {
            uint32_t bits;
            memcpy(&bits, &w[i], 4);
            plain[i] = id == DPI_TYPE_F16 ? dpi_f32_to_f16(w[i]) : (uint16_t)(bits >> 16);
        }
        for (int32_t g = 0; g < n_panels; g++) {
            int32_t left = n_out - g * DPI_PANEL_ROWS;
            dpi_panel_pack(type, plain + g * DPI_PANEL_ROWS * n_in,
                           left < DPI_PANEL_ROWS ? left : DPI_PANEL_ROWS, n_in,
                           packed + g * DPI_PANEL_ROWS * n_in * 2);
        }
        fast(a, stride, x, n_in, n_rows, packed, n_in, n_out,
             &isa.tuning);
        slow(b, stride, x, n_in, n_rows, packed, n_in, n_out,
             &isa.tuning);
        for (int32_t o = 0; o < n_out; o++) {
            type->dequantize(plain + o * n_in, row, n_in);
            for (int32_t r = 0; r < n_rows; r++) {
                double sum = 0, power = 0; /* errors are relative to the terms, which may cancel */
                for (int64_t k = 0; k < n_in; k++) {
                    sum += (double)row[k] * (double)x[r * n_in + k];
                    power += fabs((double)row[k] * (double)x[r * n_in + k]);
                }
                float exact = (float)sum;
                assert_close(b + r * stride + o, &exact, 1, power, EPS);
                assert_close(a + r * stride + o, &exact, 1, power, EPS * (double)n_in);
                assert_true(a[r * stride + n_out] == 0);
            }
        }
        for (int32_t r = 0; r < n_rows; r++) /* alone, a row has the same bits */
            fast(b + r * stride, stride, x + r * n_in, n_in, 1, packed, n_in, n_out,
             &isa.tuning);
        assert_memory_equal(a, b, (size_t)(n_rows * stride) * 4);
        free(plain), free(packed), free(w), free(x), free(a), free(b), free(row);
    }
}

#define CHECK_H(name, id)                           \
    static void check_matmul_##name(void **state) { \
        (void)state;                                \
        check_matmul_h(id);                         \
    }
#define CHECK_F32(name, id)
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) CHECK_##product(name, id)
#include "kernels/weight_types.def"
#undef WEIGHT

/* Three blocks of online softmax; the reference is also held against plain softmax in double. K
 * [n, dk] goes into blocks whose places that no position has hold NaN, which must not matter. */
static void check_attend(int half) {
    static const int32_t dims[][2] = {{8, 8}, {64, 64}, {50, 34}, {128, 128}};
    static const int32_t counts[] = {1, 5, 16, 63, 64};
    enum { N_Q = 15, BLOCKS = 3, MAX = 128 };
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
            int64_t n_blocked = (int64_t)BLOCKS * DPI_KV_BLOCK * dk;
            float *kb = zeros(n_blocked, 4);
            uint16_t *khb = zeros(n_blocked, 2);
            for (int64_t a = 0; a < n_blocked; a++)
                kb[a] = NAN;
            for (int32_t a = 0; a < n; a++)
                for (int32_t b = 0; b < dk; b++)
                    kb[dpi_kv_k_at(a, b, dk)] = k[a * dk + b];
            ref.f32_to_f16(khb, kb, n_blocked);
            float acc[2][N_Q * MAX] = {{0}}, m[2][N_Q], l[2][N_Q] = {{0}};
            for (int h = 0; h < N_Q; h++)
                m[0][h] = m[1][h] = -INFINITY;
            for (int b = 0; b < BLOCKS; b++)
                for (int t = 0; t < 2; t++) {
                    const dpi_kernels *f = t ? &ref : &isa;
                    int64_t at = b * DPI_KV_BLOCK;
                    int32_t count = b + 1 < BLOCKS ? DPI_KV_BLOCK : last;
                    if (half)
                        f->attend_f16(acc[t], m[t], l[t], q, khb + at * dk, vh + at * dv, N_Q,
                                      count, dk, dv, scale, khb, vh);
                    else
                        f->attend_f32(acc[t], m[t], l[t], q, kb + at * dk, v + at * dv, N_Q, count,
                                      dk, dv, scale, kb, v);
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
            free(q), free(k), free(v), free(kh), free(vh), free(kb), free(khb);
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

#define CHECK_SAMPLER(name)                     \
    static void check_##name(void **state) {    \
        (void)state;                            \
        check_sampler_##name(&isa, &ref);       \
    }
CHECK_SAMPLER(clip_add)
CHECK_SAMPLER(clip_range)
CHECK_SAMPLER(exp2_weights)

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
        cmocka_unit_test(test_row_blocks),
        cmocka_unit_test(test_vnni),
/* A kernel without a check does not compile. */
#define KERNEL(name, parameters) cmocka_unit_test(check_##name),
#include "kernels/kernels.def"
#undef KERNEL
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
