/* winograd_products_tmpl.h - products of 8-bit activations with codes 0 to 15, with fewer
 * multiplications.
 *
 * x0 y0 + x1 y1 = (x0 + y1)(x1 + y0) - x0 x1 - y0 y1: one multiplication instead of two (S.
 * Winograd, "A new algorithm for inner product", 1968). x0 x1 belongs to the activations alone,
 * y0 y1 to the weights, so that each is found once for many products; what is left is two
 * additions. They pay where a core adds beside its multiplications (Zen 4), not where the same
 * units do both (Intel's), so it is measured (cpu.h). Within the range of a dot's
 * operands, one unsigned and one signed, that is with E = DPI_WINOGRAD_EVEN, O = DPI_WINOGRAD_ODD,
 * |x| <= 120 (DPI_Q8_WINOGRAD) x0 y0 + x1 y1 = (x0 + E + y1)(x1 + O + y0) - (x0 + E)(x1 + O) - (y1
 * + E)(y0 + O) + E O. x0 and x1, y0 and y1 are a dot's four values of an even and of the next odd
 * step. Two steps of a sub-block stay as they are: then additions and multiplications take the same
 * time.
 *
 * Sums are the integers of q_products_tmpl.h, scaled and added in the same order: the same bits.
 * Rows of one block keep their accumulators in registers; with more, weights are unpacked once for
 * all and accumulators wait in the L1 cache.
 *
 * An ISA file includes this after q_products_tmpl.h, with HAS_WINOGRAD 1 and
 *   add_words(a, b) add_bytes(a, b) sub_bytes(a, b) broadcast_byte(n)  load_f(p)
 *   dot_bytes(sum, a, b)  sum + products of four bytes of each lane of a, unsigned, and b, signed
 * and gets matmul_winograd(type, ...). Not a header to include elsewhere. */

enum { WINOGRAD_MOST_ROWS = 6 * DPI_ROW_BLOCK }; /* for which weights are unpacked once */

/* Rows for which weights are unpacked once, in sets side by side: one set of `rows`, or some of n
 * and then of n - 1 rows. */
typedef struct winograd_rows {
    const dpi_q8_winograd *at; /* of the first row (q8.h) */
    int32_t rows, long_rows; /* all; in sets of n */
    int64_t subs; /* sub-blocks of a row */
    dpi_prefetch ahead;
} winograd_rows;

/* What sub-block `at` is multiplied with: n rows side by side from `first` on. */
INLINE const dpi_q8_winograd *winograd_at(const winograd_rows *rows, int32_t first, int n,
                                          int64_t at) {
    return rows->at + first * rows->subs + at * n;
}

/* sum[r] = where sums begin. */
INLINE void winograd_begin(const int type, const int n, vec *sum, const dpi_q8_winograd *x) {
    for (int r = 0; r < n; r++)
        sum[r] = broadcast_word(bias_bits(type) ? x[r].start_8 : x[r].start);
}

/* sum[r] += products of steps `even` and the next, with codes c0 and c1, paired, and of step
 * `alone`, with c, if there is one: on its own it would have additions wait for dots. */
INLINE void winograd_pair(const int n, vec *sum, const dpi_q8_winograd *x, const int even, vec c0,
                          vec c1, const int alone, vec c) {
    for (int r = 0; r < n; r++) {
        if (alone < 8)
            sum[r] = dot_words(sum[r], c, &x[r].q[alone]);
        vec a = add_bytes(c1, broadcast_word(x[r].q[even]));
        vec b = add_bytes(c0, broadcast_word(x[r].q[even + 1]));
        sum[r] = dot_bytes(sum[r], a, b);
    }
}

/* minus - (y1 + E)(y0 + O), summed over the pair. */
INLINE vec winograd_minus(vec minus, vec c0, vec c1) {
    return dot_bytes(minus, add_bytes(c1, broadcast_byte(DPI_WINOGRAD_EVEN)),
                     sub_bytes(broadcast_byte(-DPI_WINOGRAD_ODD), c0));
}

/* A row's accumulator with the sub-block's sum added. */
INLINE vecf winograd_add(const int type, vecf acc, vec sum, vec minus, const scales *f, vecf origin,
                     const dpi_q8_winograd *x) {
    vecf v = fma_f(f->scale, as_float(add_words(sum, minus)), origin);
    if (has_min(type))
        acc = fma_f(f->min, broadcast_f(x->scaled), acc);
    return fma_f(v, broadcast_f(x->d), acc);
}

/* The products of sub-block `at` with one set of rows, acc [n]. */
INLINE void winograd_in_registers(const int type, const int n, const int subs,
                                  const winograd_rows *rows, vecf *acc, int64_t at, const words *w,
                                  const int sub, const scales *f) {
    const dpi_q8_winograd *x = winograd_at(rows, 0, n, at);
    vec sum[DPI_ROW_BLOCK], minus = broadcast_word(0), c[8];
    winograd_begin(type, n, sum, x);
    UNROLL for (int even = 0, alone = DPI_WINOGRAD_STEPS; even < DPI_WINOGRAD_STEPS;
                even += 2, alone++) {
        const int odd = even + 1, last = alone < 8 ? alone : even;
        c[even] = prefetch_step(type, n, subs, code(type, w, sub, even), w, 8 * sub + even);
        c[odd] = prefetch_step(type, n, subs, code(type, w, sub, odd), w, 8 * sub + odd);
        if (alone < 8)
            c[last] = prefetch_step(type, n, subs, code(type, w, sub, last), w, 8 * sub + last);
        minus = winograd_minus(minus, c[even], c[odd]);
        winograd_pair(n, sum, x, even, c[even], c[odd], alone, c[last]);
    }
    vecf origin = mul_f(f->scale, broadcast_f(-DPI_ORIGIN));
    for (int r = 0; r < n; r++)
        acc[r] = winograd_add(type, acc[r], sum[r], minus, f, origin, &x[r]);
}

/* The same with a set of n rows from `first` on, acc [n] in memory. */
INLINE void winograd_block(const int type, const int n, const winograd_rows *rows, int32_t first,
                       float (*acc)[LANES], int64_t at, const vec *c, vec minus, const scales *f) {
    const dpi_q8_winograd *x = winograd_at(rows, first, n, at);
    vec sum[DPI_ROW_BLOCK];
    winograd_begin(type, n, sum, x);
    UNROLL for (int even = 0, alone = DPI_WINOGRAD_STEPS; even < DPI_WINOGRAD_STEPS;
                even += 2, alone++)
        winograd_pair(n, sum, x, even, c[even], c[even + 1], alone, c[alone < 8 ? alone : even]);
    vecf origin = mul_f(f->scale, broadcast_f(-DPI_ORIGIN));
    for (int r = 0; r < n; r++)
        store_f(acc[r], winograd_add(type, load_f(acc[r]), sum[r], minus, f, origin, &x[r]), LANES);
}

/* The same with several sets, acc [rows]. */
INLINE void winograd_in_memory(const int type, const int n, const int subs,
                               const winograd_rows *rows, float (*acc)[LANES], int64_t at,
                               const words *w, const int sub, const scales *f) {
    vec c[8], minus = broadcast_word(0);
    UNROLL for (int g = 0; g < 8; g++)
        c[g] = prefetch_step(type, n, subs, code(type, w, sub, g), w, 8 * sub + g);
    UNROLL for (int g = 0; g < DPI_WINOGRAD_STEPS; g += 2)
        minus = winograd_minus(minus, c[g], c[g + 1]);
    int32_t first = 0;
    for (; first < rows->long_rows; first += n)
        winograd_block(type, n, rows, first, acc + first, at, c, minus, f);
    for (; n > DPI_WINOGRAD_ROWS && first < rows->rows; first += n - 1)
        winograd_block(type, n - 1, rows, first, acc + first, at, c, minus, f);
}

/* The products of `subs` sub-blocks from `at` on, a block or blocks_at_once(); of one set of
 * rows in `registers`, or of several in `acc`. */
INLINE void winograd_subs(const int type, const int n, const int subs, const winograd_rows *rows,
                          vecf *registers, float (*acc)[LANES], int64_t at, words w) {
    const int per_round = unrolled(type, n, subs), n_rounds = subs / per_round;
    scales ready[8];
    UNROLL for (int i = 0; i < subs; i++)
        ready[i] = scales_of(type, &w, i, 0);
    prefetch_rest(type, n, subs, &w);
    for (int i = 0; i < n_rounds; i++) {
        UNROLL for (int sub = 0; sub < per_round; sub++) {
            const scales *f = &ready[i * per_round + sub];
            if (registers)
                winograd_in_registers(type, n, subs, rows, registers, at + sub, &w, sub, f);
            else
                winograd_in_memory(type, n, subs, rows, acc, at + sub, &w, sub, f);
        }
        at += per_round;
        words_skip(&w, unrolled_words(type, n, subs));
    }
}

/* y[r, 0..n_out) for LANES outputs and `rows`; is_one_set: of n rows side by side. */
INLINE void winograd_panel(const int type, const int n, const bool is_one_set,
                           const winograd_rows *rows, float *y, int64_t y_stride,
                           const unsigned char *w, int32_t n_out) {
    const int scale_bytes = has_block_scale(type) ? 2 * DPI_PANEL_ROWS : 0, subs = sub_blocks(type);
    const int64_t bytes = 4 * DPI_PANEL_ROWS * block_words(type), n_subs = rows->subs;
    _Alignas(64) float acc[WINOGRAD_MOST_ROWS][LANES];
    vecf sums_of_set[DPI_ROW_BLOCK], *registers = is_one_set ? sums_of_set : NULL;
    /* One set of rows waits for memory. */
    const int prefetch = is_one_set ? PREFETCH_L2_L1 : PREFETCH_L1;
    int64_t at = 0;
    for (int r = 0; is_one_set && r < n; r++)
        registers[r] = zero_f();
    for (int32_t r = 0; !is_one_set && r < rows->rows; r++)
        store_f(acc[r], zero_f(), LANES);
    if (subs > 1) {
        for (; at < n_subs; at += subs, w += bytes)
            winograd_subs(type, n, subs, rows, registers, acc, at,
                          words_at(w, w, w, &rows->ahead, prefetch));
    } else {
        for (; at + 1 < n_subs; at += 2, w += 2 * (scale_bytes + bytes))
            winograd_subs(type, n, 2, rows, registers, acc, at,
                      words_at(w, w + 2 * scale_bytes, w, &rows->ahead, prefetch));
        if (at < n_subs)
            winograd_subs(type, n, 1, rows, registers, acc, at,
                      words_at(w, w + scale_bytes, w, &rows->ahead, prefetch));
    }
    for (int r = 0; is_one_set && r < n; r++)
        store_f(y + r * y_stride, registers[r], n_out);
    for (int32_t r = 0; !is_one_set && r < rows->rows; r++)
        store_f(y + r * y_stride, load_f(acc[r]), n_out);
}

INLINE void matmul_winograd(const int type, float *y, int64_t y_stride, const dpi_q8 *x,
                            int32_t n_rows, const unsigned char *w, int64_t n_in, int32_t n_out,
                            const dpi_tuning *tuning) {
    const int scale_bytes = has_block_scale(type) ? 2 : 0;
    const int64_t block_bytes = DPI_PANEL_ROWS * (4 * block_words(type) + scale_bytes);
    const int64_t panel_bytes = n_in / (32 * sub_blocks(type)) * block_bytes;
    const dpi_prefetch ahead = tuning->quantized[DPI_PANELS][n_rows == 1];
    for (int32_t o = 0; o < n_out; o += LANES, w += panel_bytes)
        for (int32_t first = 0; first < n_rows;) {
            winograd_rows rows = {.at = dpi_q8_at(x, first, n_in).winograd, .subs = n_in / 32,
                              .ahead = ahead};
            const int32_t n = dpi_row_block(n_rows, first);
            while (first + rows.rows < n_rows && rows.rows + n <= WINOGRAD_MOST_ROWS) {
                int32_t block = dpi_row_block(n_rows, first + rows.rows);
                rows.long_rows += block == n ? n : 0;
                rows.rows += block;
            }
            float *at = y + first * y_stride + o;
#define PANEL(n, is_one_set) winograd_panel(type, n, is_one_set, &rows, at, y_stride, w, n_out - o)
            switch (rows.rows == n ? n : 16 + n) {
            case 6: PANEL(6, true); break;
            case 7: PANEL(7, true); break;
            case 8: PANEL(8, true); break;
            case 9: PANEL(9, true); break;
            case 10: PANEL(10, true); break;
            case 11: PANEL(11, true); break;
            case 16 + 6: PANEL(6, false); break;
            case 16 + 7: PANEL(7, false); break;
            case 16 + 8: PANEL(8, false); break;
            case 16 + 9: PANEL(9, false); break;
            case 16 + 10: PANEL(10, false); break;
            default: PANEL(11, false); break;
            }
#undef PANEL
            first += rows.rows;
        }
}
