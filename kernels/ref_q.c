/* ref_q.c - the definition of 8-bit activations and of their products with packed weights. */
#include <math.h>
#include <string.h>

#include "kernels.h"
#include "pack.h"
#include "quant.h"

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

void dpi_fold_32(const dpi_q8 *block, int32_t rows, int32_t row, int64_t b) {
    dpi_folded *to = &block->folded[b * rows + row];
    int32_t start = DPI_FOLD_ORIGIN;
    int8_t q[8][4];
    for (int step = 0; step < 8; step++)
        memcpy(q[step], block->q + ((b * 8 + step) * rows + row) * 4, sizeof q[step]);
    for (int step = 0; step < DPI_FOLD_STEPS; step += 2)
        for (int i = 0; i < 4; i++) {
            int32_t even = q[step][i] + DPI_FOLD_EVEN, odd = q[step + 1][i] + DPI_FOLD_ODD;
            start -= even * odd;
            q[step][i] = (int8_t)(uint8_t)even;
            q[step + 1][i] = (int8_t)odd;
        }
    for (int step = 0; step < 8; step++)
        memcpy(&to->q[step], q[step], sizeof q[step]);
    to->start_8 = start + 8 * block->negative32[b * rows + row];
    to->start = start;
    to->d = block->d[b * rows + row];
    to->scaled32 = block->scaled32[b * rows + row];
}

static void quantize_q8_ref(const dpi_q8 *block, int32_t rows, int32_t row, const float *x,
                            int64_t n, int32_t form) {
    for (int64_t b = 0; b < n / DPI_Q8_BLOCK; b++) {
        int8_t q[DPI_Q8_BLOCK];
        int32_t negative[2] = {0, 0};
        float d = quantize_32(q, x + b * DPI_Q8_BLOCK, dpi_q8_most(form));
        for (int j = 0; j < DPI_Q8_BLOCK; j++) {
            block->q[((b * 8 + j / 4) * rows + row) * 4 + j % 4] = q[j];
            negative[j / 16] -= q[j];
        }
        block->d[b * rows + row] = d;
        block->negative16[2 * b * rows + row] = negative[0];
        block->negative16[(2 * b + 1) * rows + row] = negative[1];
        block->negative32[b * rows + row] = negative[0] + negative[1];
        block->scaled32[b * rows + row] = d * (float)(negative[0] + negative[1]);
        if (dpi_q8_is_folded(form))
            dpi_fold_32(block, rows, row, b);
    }
}

/* sum over k of w[k] x[k] for one row of a block of `rows` rows; weights as their exact values. */
static double dot_q8(const float *w, const dpi_q8 *x, int32_t rows, int32_t row, int64_t from,
                     int32_t n) {
    double sum = 0;
    for (int32_t k = 0; k < n; k++) {
        int64_t i = from + k;
        sum += (double)w[k] * x->q[((i / 4) * rows + row) * 4 + i % 4] *
               (double)x->d[i / DPI_Q8_BLOCK * rows + row];
    }
    return sum;
}

static void matmul(uint32_t id, float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                   const void *w, int64_t n_in, int32_t n_out) {
    const dpi_type *type = dpi_type_find(id);
    const dpi_layout *layout = dpi_layout_find(id);
    int64_t n_blocks = n_in / type->block;
    for (int32_t o = 0; o < n_out; o++) {
        const unsigned char *group =
            (const unsigned char *)w + o / DPI_GROUP * (DPI_GROUP * n_blocks * type->block_bytes);
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            double sum[DPI_ROW_BLOCK] = {0};
            rows = dpi_row_block(n_rows, first);
            dpi_q8 block = dpi_q8_at(x, first, n_in);
            for (int64_t b = 0; b < n_blocks; b++) {
                unsigned char bytes[256];
                float weights[256];
                dpi_unpack_blocks(layout, group, o % DPI_GROUP, b, 1, n_blocks, bytes);
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
                     int32_t n_rows, const void *w, int64_t n_in, int32_t n_out) {
    const dpi_type *type = dpi_type_find(id);
    for (int32_t o = 0; o < n_out; o++) {
        const unsigned char *group =
            (const unsigned char *)w + (int64_t)(o / DPI_GROUP) * DPI_GROUP * n_in * 2;
        for (int32_t r = 0; r < n_rows; r++) {
            double sum = 0;
            for (int64_t k = 0; k < n_in; k++) {
                float weight;
                type->dequantize(group + (k * DPI_GROUP + o % DPI_GROUP) * 2, &weight, 1);
                sum += (double)weight * (double)x[r * x_stride + k];
            }
            y[r * y_stride + o] = (float)sum;
        }
    }
}

#define NAME(kernel) kernel##_ref
#include "product_slots.h"

void dpi_kernels_init_ref_q(dpi_kernels *k) {
    k->quantize_q8 = quantize_q8_ref;
    k->folds = false;
    init_products(k);
}
