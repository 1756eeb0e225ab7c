/* h_products.h - products of f32 activations with packed weights of 16 bits, written once for every
 * ISA. Included after q_products.h, whose primitives it uses; the ISA file adds
 *   H_TILE               sequences in a tile: 2 H_TILE sums are held in registers
 *   load_bfloats(p)      LANES bfloat16 from p, as f32
 *   h_tiles(...)         cuts `rows` sequences into tiles of constant size
 * Not a header to include elsewhere. */

INLINE vecf load_weights(const int type, const unsigned char *p) {
    return type == DPI_TYPE_F16 ? load_halves(p) : load_bfloats(p);
}

/* y[r, 0..n_out) for vectors(n) * LANES outputs and n sequences. `w` is a group from its lane on.
 * Even and odd k are summed apart, since one sum could not be added to in every cycle. */
INLINE void h_tile(const int type, const int n, float *y, int64_t y_stride, const float *x,
                   int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out) {
    vecf even[DPI_GROUP / LANES][H_TILE], odd[DPI_GROUP / LANES][H_TILE];
    for (int v = 0; v < vectors(n); v++)
        for (int r = 0; r < n; r++)
            even[v][r] = odd[v][r] = zero_f();
    enum { AHEAD = 16384 }; /* bytes that are asked for before they are read */
    const bool asks = n > 1 || asks_for(true, 1).l1 > 0;
    int64_t k = 0;
    for (; k + 2 <= n_in; k += 2, w += 4 * DPI_GROUP) {
        if (asks)
            _mm_prefetch((const char *)w + AHEAD, _MM_HINT_T1);
        for (int v = 0; v < vectors(n); v++) {
            const unsigned char *at = w + 2 * LANES * v;
            vecf a = load_weights(type, at), b = load_weights(type, at + 2 * DPI_GROUP);
            for (int r = 0; r < n; r++) {
                even[v][r] = fma_f(a, broadcast_f(x[r * x_stride + k]), even[v][r]);
                odd[v][r] = fma_f(b, broadcast_f(x[r * x_stride + k + 1]), odd[v][r]);
            }
        }
    }
    for (int v = 0; v < vectors(n); v++)
        for (int r = 0; r < n; r++) {
            if (k < n_in)
                even[v][r] = fma_f(load_weights(type, w + 2 * LANES * v),
                                   broadcast_f(x[r * x_stride + k]), even[v][r]);
            store_f(y + r * y_stride + v * LANES, add_f(even[v][r], odd[v][r]), n_out - v * LANES);
        }
}

INLINE void matmul_h(const int type, float *y, int64_t y_stride, const float *x, int64_t x_stride,
                     int32_t n_rows, const void *w, int64_t n_in, int32_t n_out) {
    const unsigned char *group = w;
    for (int32_t o = 0; o < n_out; o += DPI_GROUP, group += 2 * DPI_GROUP * n_in)
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            rows = dpi_row_block(n_rows, first);
            for (int lane = 0; lane < DPI_GROUP && o + lane < n_out;
                 lane += vectors(n_rows) * LANES)
                h_tiles(type, rows, y + first * y_stride + o + lane, y_stride, x + first * x_stride,
                        x_stride, group + 2 * lane, n_in, n_out - o - lane);
        }
}
