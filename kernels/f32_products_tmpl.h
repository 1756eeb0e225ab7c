/* f32_products_tmpl.h - products of f32 activations with f32 weights, cut into tiles: the part that
 * is the same for every ISA.
 *
 * An ISA file defines COLS, the outputs of a tile, and tile_f32(y, y_stride, x, x_stride, w, n_in,
 * rows, cols) for 1..4 rows and COLS outputs or one; then it includes this and uses matmul_f32. Not
 * a header to include elsewhere. */

INLINE void rows_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, int32_t n_rows,
                     const float *w, int64_t n_in, const int cols) {
    for (; n_rows >= 4; n_rows -= 4, x += 4 * x_stride, y += 4 * y_stride)
        tile_f32(y, y_stride, x, x_stride, w, n_in, 4, cols);
    switch (n_rows) {
    case 3: tile_f32(y, y_stride, x, x_stride, w, n_in, 3, cols); break;
    case 2: tile_f32(y, y_stride, x, x_stride, w, n_in, 2, cols); break;
    case 1: tile_f32(y, y_stride, x, x_stride, w, n_in, 1, cols); break;
    default: break;
    }
}

INLINE void matmul_f32(float *y, int64_t y_stride, const float *x, int64_t x_stride, int32_t n_rows,
                       const float *w, int64_t n_in, int32_t n_out) {
    int32_t o = 0;
    for (; o + COLS <= n_out; o += COLS)
        rows_f32(y + o, y_stride, x, x_stride, n_rows, w + o * n_in, n_in, COLS);
    for (; o < n_out; o++)
        rows_f32(y + o, y_stride, x, x_stride, n_rows, w + o * n_in, n_in, 1);
}
