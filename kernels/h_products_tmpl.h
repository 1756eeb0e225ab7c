/* h_products_tmpl.h - products of f32 activations with packed weights of 16 bits, written once for
 * every ISA. Included after q_products_tmpl.h, whose primitives it uses; the ISA file adds
 *     H_TILE           sequences in a tile: 2 H_TILE sums are held in registers
 *     load_bf16s(p)    LANES bfloat16 from p, as f32
 *     h_tiles(...)     cuts `rows` sequences into tiles of constant size
 * Not a header to include elsewhere. */

INLINE vecf load_weights(const int type, const unsigned char *p) {
    return type == DPI_TYPE_F16 ? load_f16s(p) : load_bf16s(p);
}

/* y[r, 0..n_out) for vectors(n) * LANES outputs and n sequences. `w` is a panel from its lane on,
 * prefetched `ahead` bytes into L2. Even and odd k are summed apart, since one sum could not be
 * added to in every cycle. */
INLINE void h_tile(const int type, const int n, float *y, int64_t y_stride, const float *x,
                   int64_t x_stride, const unsigned char *w, int64_t n_in, int32_t n_out,
                   const int32_t ahead) {
    vecf even[DPI_PANEL_ROWS / LANES][H_TILE], odd[DPI_PANEL_ROWS / LANES][H_TILE];
    for (int v = 0; v < vectors(n); v++)
        for (int r = 0; r < n; r++)
            even[v][r] = odd[v][r] = zero_f();
    int64_t k = 0;
    for (; k + 2 <= n_in; k += 2, w += 4 * DPI_PANEL_ROWS) {
        if (n > 1 || ahead > 0)
            __builtin_prefetch(w + ahead, 0, 2);
        for (int v = 0; v < vectors(n); v++) {
            const unsigned char *at = w + 2 * LANES * v;
            vecf a = load_weights(type, at), b = load_weights(type, at + 2 * DPI_PANEL_ROWS);
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
                     int32_t n_rows, const void *w, int64_t n_in, int32_t n_out,
                     const dpi_tuning *tuning) {
    const unsigned char *panel = w;
    const int32_t ahead = tuning->f16_l2[n_rows == 1];
    for (int32_t o = 0; o < n_out; o += DPI_PANEL_ROWS, panel += 2 * DPI_PANEL_ROWS * n_in)
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            rows = dpi_row_block(n_rows, first);
            for (int lane = 0; lane < DPI_PANEL_ROWS && o + lane < n_out;
                 lane += vectors(n_rows) * LANES)
                h_tiles(type, rows, y + first * y_stride + o + lane, y_stride, x + first * x_stride,
                        x_stride, panel + 2 * lane, n_in, n_out - o - lane, ahead);
        }
}
