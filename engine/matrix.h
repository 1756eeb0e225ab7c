/* matrix.h - a weight matrix [n_out, n_in], wherever its bytes are. Internal.
 *
 * A matrix is stored as rows of blocks in the file image and, if its type has a packed form, as
 * panels (kernels/pack.h) in the model's own memory as soon as it is packed. Callers multiply, read
 * rows and prefetch, and do not know which. A product has the same bits before and after packing.
 *
 * Threads: everything here may be called by several threads at once, also while a matrix is being
 * packed. */
#ifndef DPI_MATRIX_H
#define DPI_MATRIX_H

#include <stdatomic.h>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/pack.h"

enum { DPI_TILE_OUT = 32 }; /* output columns of a tile, a multiple of DPI_PANEL_ROWS */

/* Tiles of n columns. */
static inline int64_t dpi_n_tiles(int64_t n) { return (n + DPI_TILE_OUT - 1) / DPI_TILE_OUT; }

typedef struct dpi_matrix {
    int64_t n_out, n_in;
    const float *bias; /* [n_out], added to the product; NULL: none */
    const struct dpi_adapter *adapter; /* adapter.h; NULL: none. Products here are without both */
    const struct dpi_matrix *next; /* what a pass multiplies with after it; NULL: nothing */
    /* Storage: of matrix.c and pack_model.c alone. */
    const dpi_type *type;       /* NULL: no such matrix */
    const unsigned char *rows;  /* in the file image; a page fault each once they are packed */
    unsigned char *panels;      /* NULL: never packed */
    atomic_bool *is_packed;     /* panels hold the matrix */
} dpi_matrix;

/* Rows of activations that matrices are multiplied with, and how. */
typedef struct dpi_input {
    const dpi_kernels *kernels;
    const float *x; /* [buffer rows, n] */
    int64_t n;
    int32_t first, n_rows; /* rows [first, first + n_rows) of x */
    bool is_exact;  /* f32 activations for every type */
    const dpi_blas *blas; /* for f32 activations; NULL: kernels alone. If not, the buffer is a chunk
                             of a prompt, DPI_GEMM_ROWS rows of which BLAS computes all */
    dpi_q8 q8;      /* the same rows in 8 bits, if dpi_matrix_q8_form says that they are read */
} dpi_input;

/* The form of 8-bit activations (q8.h) that some matrices read of this input; -1: none of
 * them reads any. */
int32_t dpi_matrix_q8_form(const dpi_input *in, const dpi_matrix *const *matrices, int32_t n);

/* y[r * y_stride + o - begin] = x[first + r] . w[o], r < n_rows, for columns o of [begin, end);
 * begin is a multiple of DPI_PANEL_ROWS. With blas, rows of y before y[0] and after the last
 * one are written as well: y is a buffer of the rows of x, from row `first` on, and begin is a
 * multiple of DPI_TILE_OUT. `scratch` [DPI_TILE_OUT, n_in] is the calling thread's. */
void dpi_matrix_multiply(const dpi_matrix *w, const dpi_input *in, float *y, int64_t y_stride,
                         int64_t begin, int64_t end, float *scratch);

/* Row `row` as f32 [n_in]. */
void dpi_matrix_row(const dpi_matrix *w, int64_t row, float *out);

/* Prefetches what a thread reads first of columns [begin, end), which memory has time to bring
 * while threads wait. Kernels prefetch the rest themselves. */
void dpi_matrix_prefetch(const dpi_matrix *w, int64_t begin, int64_t end);

/* Packs the panels that hold rows [begin, end), of those that there are; begin is a multiple of
 * DPI_PANEL_ROWS. */
void dpi_matrix_pack(const dpi_matrix *w, int64_t begin, int64_t end, unsigned char *to);

static inline bool dpi_matrix_is_packed(const dpi_matrix *w) {
    return w->panels && atomic_load_explicit(w->is_packed, memory_order_acquire);
}

#endif
