/* ref_q.c - the definition of 8-bit activations and of their products with packed weights. */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/weight_types.h"

/* The L whose scale max / L has the smallest error, as kernels.def defines it. */
static int32_t best_levels(const float *x, float max, int32_t most) {
    float inverse = max > 1e-30f ? 65536.0f / max : 0.0f, least = INFINITY;
    uint32_t t[DPI_Q8_BLOCK];
    int32_t best = most;
    for (int j = 0; j < DPI_Q8_BLOCK; j++) {
        float v = rintf(x[j] * inverse);
        t[j] = v == v ? (uint32_t)(int32_t)v : 0;
    }
    for (int32_t L = most; L > most - dpi_q8_levels(most); L--) {
        int32_t sum = 0;
        for (int j = 0; j < DPI_Q8_BLOCK; j++) {
            int32_t error = (int16_t)(t[j] * (uint32_t)L) >> 4;
            sum += error * error;
        }
        float relative = (float)sum * dpi_q8_weight(L);
        best = relative < least ? L : best;
        least = relative < least ? relative : least;
    }
    return best;
}

/* Returns d. */
static float quantize_32(int8_t *q, const float *x, int32_t most) {
    float max = 0;
    for (int j = 0; j < DPI_Q8_BLOCK; j++)
        max = fabsf(x[j]) > max ? fabsf(x[j]) : max;
    float levels = (float)best_levels(x, max, most), inverse = max > 1e-30f ? levels / max : 0.0f;
    for (int j = 0; j < DPI_Q8_BLOCK; j++) {
        float v = rintf(x[j] * inverse);
        /* Written so that a NaN comes out as -most. */
        v = v >= (float)-most ? v : (float)-most;
        q[j] = (int8_t)(v > (float)most ? most : (int32_t)v);
    }
    return max / levels;
}

static void put_winograd(dpi_q8_winograd *to, const int8_t *q, int32_t sum, float d, float scaled) {
    uint8_t offset[DPI_Q8_BLOCK];
    int32_t start = DPI_WINOGRAD_ORIGIN;
    memcpy(offset, q, sizeof offset);
    for (int step = 0; step < DPI_WINOGRAD_STEPS; step += 2)
        for (int i = 4 * step; i < 4 * step + 4; i++) {
            int32_t even = q[i] + DPI_WINOGRAD_EVEN, odd = q[i + 4] + DPI_WINOGRAD_ODD;
            start -= even * odd;
            offset[i] = (uint8_t)even;
            offset[i + 4] = (uint8_t)odd;
        }
    memcpy(to->q, offset, sizeof to->q);
    to->start_8 = start - 8 * sum;
    to->start = start;
    to->d = d;
    to->scaled = scaled;
}

void dpi_q8_put(const dpi_q8 *to, int64_t at, int32_t form, const int8_t *q, const int32_t *sums,
                float d) {
    const int32_t sum = sums[0] + sums[1];
    const float scaled = d * (float)-sum;
    if (dpi_q8_has_plain(form)) {
        memcpy(to->plain[at].q, q, sizeof to->plain[at].q);
        to->plain[at].start_128 = DPI_ORIGIN_BITS - 128 * sum;
        to->plain[at].d = d;
        for (int h = 0; h < 2; h++)
            to->sums[at].start_32[h] = DPI_ORIGIN_BITS - 32 * sums[h];
        to->sums[at].scaled = scaled;
    }
    if (dpi_q8_has_winograd(form))
        put_winograd(&to->winograd[at], q, sum, d, scaled);
}

static void quantize_q8_ref(const dpi_q8 *to, int32_t rows, const float *x, int64_t x_stride,
                            int64_t n, int32_t form) {
    for (int64_t at = 0; at < n / DPI_Q8_BLOCK * rows; at++) {
        int8_t q[DPI_Q8_BLOCK];
        int32_t sums[2] = {0, 0};
        float d = quantize_32(q, x + at % rows * x_stride + at / rows * DPI_Q8_BLOCK,
                              dpi_q8_most(form));
        for (int j = 0; j < DPI_Q8_BLOCK; j++)
            sums[j / 16] += q[j];
        dpi_q8_put(to, at, form, q, sums, d);
    }
}

/* sum over k of w[k] x[k] for one of `rows` rows side by side; weights as their exact values. */
static double dot_q8(const float *w, const dpi_q8 *x, int32_t rows, int32_t row, int64_t from,
                     int32_t n) {
    double sum = 0;
    for (int32_t k = 0; k < n; k++) {
        int64_t i = from + k;
        const dpi_q8_plain *at = &x->plain[i / DPI_Q8_BLOCK * rows + row];
        sum += (double)w[k] * ((const int8_t *)at->q)[i % DPI_Q8_BLOCK] * (double)at->d;
    }
    return sum;
}

static void matmul_q(uint32_t id, float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                     const void *w, int64_t n_in, int32_t n_out, const dpi_tuning *tuning) {
    (void)tuning;
    const dpi_type *type = dpi_type_find(id);
    int64_t n_blocks = n_in / type->block;
    for (int32_t o = 0; o < n_out; o++) {
        const unsigned char *panel =
            (const unsigned char *)w +
            o / DPI_PANEL_ROWS * (DPI_PANEL_ROWS * n_blocks * type->block_bytes);
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            double sum[DPI_ROW_BLOCK] = {0};
            rows = dpi_row_block(n_rows, first);
            dpi_q8 block = dpi_q8_at(x, first, n_in);
            for (int64_t b = 0; b < n_blocks; b++) {
                unsigned char bytes[256];
                float weights[256];
                dpi_panel_unpack(type, panel, o % DPI_PANEL_ROWS, b, 1, n_blocks, bytes);
                type->dequantize(bytes, weights, type->block);
                for (int32_t r = 0; r < rows; r++)
                    sum[r] += dot_q8(weights, &block, rows, r, b * type->block, type->block);
            }
            for (int32_t r = 0; r < rows; r++)
                y[(first + r) * y_stride + o] = (float)sum[r];
        }
    }
}

static void matmul_h(uint32_t id, float *y, int64_t y_stride, const float *x, int64_t x_stride,
                     int32_t n_rows, const void *w, int64_t n_in, int32_t n_out,
                     const dpi_tuning *tuning) {
    (void)tuning;
    const dpi_type *type = dpi_type_find(id);
    for (int32_t o = 0; o < n_out; o++) {
        const unsigned char *panel =
            (const unsigned char *)w + (int64_t)(o / DPI_PANEL_ROWS) * DPI_PANEL_ROWS * n_in * 2;
        for (int32_t r = 0; r < n_rows; r++) {
            double sum = 0;
            for (int64_t k = 0; k < n_in; k++) {
                float weight;
                type->dequantize(panel + (k * DPI_PANEL_ROWS + o % DPI_PANEL_ROWS) * 2, &weight, 1);
                sum += (double)weight * (double)x[r * x_stride + k];
            }
            y[r * y_stride + o] = (float)sum;
        }
    }
}

#define NAME(kernel) kernel##_ref
#include "kernels/product_slots_tmpl.h"

void dpi_kernels_init_ref_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_ref;
    k->has_winograd = false;
    init_products(k);
}
