/* family_q8.c - activations to 8 bits (kernels/q8.h). */
#include "tests/kernels/family_q8.h"

#include <math.h>

dpi_q8 q8_alloc(int32_t n_rows, int64_t n) {
    int64_t blocks = n_rows * (n / 32);
    return (dpi_q8){zeros(blocks, sizeof(dpi_q8_plain)), zeros(blocks, sizeof(dpi_q8_sums)),
                    zeros(blocks, sizeof(dpi_q8_winograd))};
}

void q8_free(dpi_q8 *x) { free(x->plain), free(x->sums), free(x->winograd); }

/* Value i of a row of a block of `rows` rows. */
static int8_t q8_value(const dpi_q8_plain *x, int32_t rows, int32_t row, int32_t i) {
    return ((const int8_t *)x[i / DPI_Q8_BLOCK * rows + row].q)[i % DPI_Q8_BLOCK];
}

void q8_fill(const dpi_kernels *k, dpi_q8 *to, const float *x, int32_t n_rows, int64_t n,
             int32_t form) {
    for (int32_t first = 0, rows; first < n_rows; first += rows) {
        rows = dpi_row_block(n_rows, first);
        dpi_q8 block = dpi_q8_at(to, first, n);
        k->quantize_q8(&block, rows, x + first * n, n, n, form);
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

static void check_form(checker *c, int32_t form) {
    enum { ROWS = 11, N = 32 * 46 };
    const int32_t most = dpi_q8_most(form);
    float *x = randoms(c, ROWS * N, 2);
    memset(x, 0, 32 * sizeof *x); /* a sub-block of zeros */
    for (int i = 32; i < 64; i++)
        x[i] = 1e-38f * (float)(i - 40); /* one too small to scale */
    x[64] = NAN, x[97] = -127.0f, x[98] = 0.5f, x[99] = 1.5f, x[100] = -2.5f;
    dpi_q8 a = q8_alloc(ROWS, N), b = q8_alloc(ROWS, N);
    q8_fill(&c->isa, &a, x, ROWS, N, form);
    q8_fill(&c->ref, &b, x, ROWS, N, form);
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

static void check_winograd(checker *c) {
    enum { ROWS = 24, N = 32 * 5 };
    float *x = randoms(c, ROWS * N, 2);
    for (int n_rows = 1; n_rows <= ROWS; n_rows++) {
        dpi_q8 a = q8_alloc(n_rows, N), b = q8_alloc(n_rows, N);
        q8_fill(&c->isa, &a, x, n_rows, N, n_rows % 2 ? DPI_Q8_BOTH : DPI_Q8_WINOGRAD);
        q8_fill(&c->ref, &b, x, n_rows, N, DPI_Q8_BOTH);
        assert_memory_equal(a.winograd, b.winograd, (size_t)(n_rows * N / 32) * sizeof *a.winograd);
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            rows = dpi_row_block(n_rows, first);
            dpi_q8 block = dpi_q8_at(&a, first, N), plain = dpi_q8_at(&b, first, N);
            for (int32_t i = 0; i < rows * N / 32; i++) {
                uint8_t code[32];
                int32_t sum = 0, at = i / rows, r = i % rows;
                for (int32_t k = 0; k < 32; k++) { /* some sub-blocks with the extremes alone */
                    code[k] = (uint8_t)random_below(&c->seed, 16);
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

CHECK(quantize_q8) {
    check_form(c, DPI_Q8_PLAIN);
    check_form(c, DPI_Q8_NARROW);
    check_form(c, DPI_Q8_BOTH);
    check_winograd(c);
}
KERNEL_OF(quantize_q8, 16.0 * TIMED_N_IN, 5.0 * TIMED_N_IN, &t->q8, 1, t->x, TIMED_N_IN, TIMED_N_IN,
          DPI_Q8_PLAIN)
