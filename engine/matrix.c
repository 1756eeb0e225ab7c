#include "engine/matrix.h"


static uint64_t row_bytes(const dpi_matrix *w) { return dpi_type_row_bytes(w->type, w->n_in); }

/* ---- Kernels --------------------------------------------------------------------------------- */

/* The kernel for 8-bit activations, where this matrix is to use one. */
static dpi_matmul_q_fn *kernel_q(const dpi_input *in, const dpi_matrix *w) {
    return in->is_exact || !w->panels ? NULL : dpi_kernels_matmul_q(in->kernels, w->type->id);
}

/* The kernel for f32 activations and packed weights of 16 bits. */
static dpi_matmul_h_fn *kernel_h(const dpi_input *in, const dpi_matrix *w) {
    return in->is_exact || !w->panels ? NULL : dpi_kernels_matmul_h(in->kernels, w->type->id);
}

int32_t dpi_matrix_q8_form(const dpi_input *in, const dpi_matrix *const *matrices, int32_t n) {
    int32_t n_q8 = 0, n_narrow = 0, n_winograd = 0;
    for (int32_t i = 0; i < n; i++)
        if (kernel_q(in, matrices[i])) {
            n_q8++;
            n_narrow += matrices[i]->type->is_narrow;
            n_winograd += dpi_kernels_winograd(in->kernels, matrices[i]->type, in->n_rows);
        }
    if (n_q8 == 0)
        return -1;
    if (n_narrow == 0)
        return DPI_Q8_PLAIN;
    if (n_winograd < n_narrow) /* the form is one for all of them */
        return DPI_Q8_NARROW;
    return n_narrow < n_q8 ? DPI_Q8_BOTH : DPI_Q8_WINOGRAD;
}

/* ---- Storage --------------------------------------------------------------------------------- */

/* Rows [begin, end) as f32: in place, or dequantised into `scratch`. */
static const float *rows_f32(const dpi_matrix *w, const dpi_kernels *kernels, int64_t begin,
                             int64_t end, float *scratch) {
    const unsigned char *rows = w->rows + (uint64_t)begin * row_bytes(w);
    if (w->type->id == DPI_TYPE_F32)
        return (const float *)(const void *)rows;
    if (w->type->id == DPI_TYPE_F16 && !w->panels)
        kernels->f16_to_f32(scratch, (const uint16_t *)(const void *)rows,
                            (end - begin) * w->n_in);
    else
        for (int64_t o = begin; o < end; o++)
            dpi_matrix_row(w, o, scratch + (o - begin) * w->n_in);
    return scratch;
}

/* Columns [begin, end) as panels: the model's, or packed into `scratch`. */
static const unsigned char *panels(const dpi_matrix *w, int64_t begin, int64_t end,
                                   float *scratch) {
    if (dpi_matrix_is_packed(w))
        return w->panels + (uint64_t)begin * row_bytes(w);
    unsigned char *to = (unsigned char *)scratch; /* no weight has more bytes than an f32 */
    dpi_matrix_pack(w, begin, end, to);
    return to;
}

void dpi_matrix_row(const dpi_matrix *w, int64_t row, float *out) {
    if (!dpi_matrix_is_packed(w)) {
        w->type->dequantize(w->rows + (uint64_t)row * row_bytes(w), out, w->n_in);
        return;
    }
    const unsigned char *panel = w->panels + (uint64_t)(row - row % DPI_PANEL_ROWS) * row_bytes(w);
    int64_t n_blocks = w->n_in / w->type->block;
    unsigned char blocks[2 * DPI_MAX_BLOCK]; /* no packed type has more than 2 bytes a weight */
    int64_t at_once = (int64_t)sizeof blocks / w->type->block_bytes;
    for (int64_t b = 0; b < n_blocks; b += at_once) {
        int64_t n = n_blocks - b < at_once ? n_blocks - b : at_once;
        dpi_panel_unpack(w->type, panel, (int32_t)(row % DPI_PANEL_ROWS), b, n, n_blocks, blocks);
        w->type->dequantize(blocks, out + b * w->type->block, n * w->type->block);
    }
}

void dpi_matrix_pack(const dpi_matrix *w, int64_t begin, int64_t end, unsigned char *to) {
    for (int64_t row = begin; row < end;
         row += DPI_PANEL_ROWS, to += DPI_PANEL_ROWS * row_bytes(w)) {
        int64_t left = w->n_out - row;
        dpi_panel_pack(w->type, w->rows + (uint64_t)row * row_bytes(w),
                       (int32_t)(left < DPI_PANEL_ROWS ? left : DPI_PANEL_ROWS),
                       w->n_in / w->type->block, to);
    }
}

void dpi_matrix_prefetch(const dpi_matrix *w, int64_t begin, int64_t end) {
    enum { LINE = 64, BYTES = 16384 };
    const unsigned char *at = dpi_matrix_is_packed(w) ? w->panels : w->rows;
    at += (uint64_t)begin * row_bytes(w);
    for (uint64_t i = 0; i < BYTES && i < (uint64_t)(end - begin) * row_bytes(w); i += LINE)
        __builtin_prefetch(at + i, 0, 2);
}

/* ---- Products -------------------------------------------------------------------------------- */

/* Columns [begin, end), at most DPI_TILE_OUT of them unless kernels read them where they are. */
static void multiply(const dpi_matrix *w, const dpi_input *in, float *y, int64_t y_stride,
                     int64_t begin, int64_t end, float *scratch) {
    const dpi_kernels *k = in->kernels;
    const float *x = in->x + in->first * in->n;
    int32_t n_out = (int32_t)(end - begin);
    dpi_matmul_q_fn *matmul_q = kernel_q(in, w);
    dpi_matmul_h_fn *matmul_h = kernel_h(in, w);
    if (matmul_q)
        matmul_q(y, y_stride, &in->q8, in->n_rows, panels(w, begin, end, scratch), in->n, n_out,
                 &k->tuning);
    else if (in->blas) /* all rows of the buffer, in use or not */
        dpi_gemm_f32(in->blas, y - in->first * y_stride, y_stride, in->x, in->n,
                     rows_f32(w, k, begin, end, scratch), in->n, n_out);
    else if (matmul_h)
        matmul_h(y, y_stride, x, in->n, in->n_rows, panels(w, begin, end, scratch), in->n, n_out,
                 &k->tuning);
    else
        k->matmul_f32(y, y_stride, x, in->n, in->n_rows, rows_f32(w, k, begin, end, scratch),
                      in->n, n_out);
}

void dpi_matrix_multiply(const dpi_matrix *w, const dpi_input *in, float *y, int64_t y_stride,
                         int64_t begin, int64_t end, float *scratch) {
    bool in_place = dpi_matrix_is_packed(w) &&
                    (kernel_q(in, w) || (kernel_h(in, w) && !in->blas));
    int64_t at_once = in_place ? end - begin : DPI_TILE_OUT;
    for (int64_t o = begin; o < end; o += at_once)
        multiply(w, in, y + (o - begin), y_stride, o, o + at_once < end ? o + at_once : end,
                 scratch);
}
