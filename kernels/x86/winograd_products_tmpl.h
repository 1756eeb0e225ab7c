/* fold_products.h - products of 8-bit activations with codes 0 to 15, with fewer multiplications.
 *
 * x0 y0 + x1 y1 = (x0 + y1)(x1 + y0) - x0 x1 - y0 y1: one multiplication instead of two (S.
 * Winograd, "A new algorithm for inner product", 1968). x0 x1 belongs to the activations alone,
 * y0 y1 to the weights, so that each is found once for many products; what is left is two
 * additions. They pay where a core adds beside its multiplications (Zen 4), not where the same
 * units do both (Intel's), so a session measures (dpi_kernels_choose). Within the range of a dot's
 * operands, one unsigned and one signed, that is with E = DPI_FOLD_EVEN, O = DPI_FOLD_ODD, |x| <=
 * 120 (DPI_Q8_FOLDED)
 *   x0 y0 + x1 y1 = (x0 + E + y1)(x1 + O + y0) - (x0 + E)(x1 + O) - (y1 + E)(y0 + O) + E O.
 * x0 and x1, y0 and y1 are a dot's four values of an even and of the next odd step. Two steps of a
 * sub-block stay as they are: then additions and multiplications take the same time.
 *
 * Sums are the integers of q_products.h, scaled and added in the same order: the same bits. Rows of
 * one block keep their accumulators in registers; with more, weights are unpacked once for all and
 * accumulators wait in the L1 cache.
 *
 * An ISA file includes this after q_products.h, with FOLDS 1 and
 *   add_words(a, b) add_bytes(a, b) sub_bytes(a, b) broadcast_byte(n)  load_f(p)
 *   dot_bytes(sum, a, b)  sum + products of groups of four bytes of a, unsigned, and b, signed
 * and gets folded(type, ...). Not a header to include elsewhere. */

enum { FOLD_MOST_ROWS = 6 * DPI_ROW_BLOCK }; /* that go through the weights together */

/* Blocks of rows that go through the weights together: one of `rows`, or some of n and then of
 * n - 1 rows. */
typedef struct fold_rows {
    const dpi_folded *folded; /* of the first row (kernels.h) */
    int32_t rows, long_rows; /* all; in blocks of n */
    int64_t subs; /* sub-blocks of a row */
    distances ahead;
} fold_rows;

/* What goes through sub-block `at` with a block of n rows from `first` on. */
INLINE const dpi_folded *fold_at(const fold_rows *rows, int32_t first, int n, int64_t at) {
    return rows->folded + first * rows->subs + at * n;
}

/* sum[r] = where sums begin. */
INLINE void fold_begin(const int type, const int n, vec *sum, const dpi_folded *x) {
    for (int r = 0; r < n; r++)
        sum[r] = broadcast_word(bias_bits(type) ? x[r].start_8 : x[r].start);
}

/* sum[r] += products of steps `even` and the next, with codes c0 and c1, folded, and of step
 * `alone`, with c, if there is one: on its own it would have additions wait for dots. */
INLINE void fold_pair(const int n, vec *sum, const dpi_folded *x, const int even, vec c0, vec c1,
                      const int alone, vec c) {
    for (int r = 0; r < n; r++) {
        if (alone < 8)
            sum[r] = dot_words(sum[r], c, &x[r].q[alone]);
        vec a = add_bytes(c1, broadcast_word(x[r].q[even]));
        vec b = add_bytes(c0, broadcast_word(x[r].q[even + 1]));
        sum[r] = dot_bytes(sum[r], a, b);
    }
}

/* minus - (y1 + E)(y0 + O), summed over the pair. */
INLINE vec fold_minus(vec minus, vec c0, vec c1) {
    return dot_bytes(minus, add_bytes(c1, broadcast_byte(DPI_FOLD_EVEN)),
                     sub_bytes(broadcast_byte(-DPI_FOLD_ODD), c0));
}

/* A row's accumulator with the sub-block's sum added. */
INLINE vecf fold_add(const int type, vecf acc, vec sum, vec minus, const scales *f, vecf origin,
                     const dpi_folded *x) {
    vecf v = fma_f(f->scale, as_float(add_words(sum, minus)), origin);
    if (has_min(type))
        acc = fma_f(f->min, broadcast_f(x->scaled), acc);
    return fma_f(v, broadcast_f(x->d), acc);
}

/* The products of sub-block `at` with rows of one block, acc [n]. */
INLINE void fold_few(const int type, const int n, const int subs, const fold_rows *rows, vecf *acc,
                     int64_t at, const words *w, const int sub, const scales *f) {
    const dpi_folded *x = fold_at(rows, 0, n, at);
    vec sum[DPI_ROW_BLOCK], minus = broadcast_word(0), c[8];
    fold_begin(type, n, sum, x);
    UNROLL for (int even = 0, alone = DPI_FOLD_STEPS; even < DPI_FOLD_STEPS; even += 2, alone++) {
        const int odd = even + 1, last = alone < 8 ? alone : even;
        c[even] = ask(type, n, subs, code(type, w, sub, even), w, 8 * sub + even);
        c[odd] = ask(type, n, subs, code(type, w, sub, odd), w, 8 * sub + odd);
        if (alone < 8)
            c[last] = ask(type, n, subs, code(type, w, sub, last), w, 8 * sub + last);
        minus = fold_minus(minus, c[even], c[odd]);
        fold_pair(n, sum, x, even, c[even], c[odd], alone, c[last]);
    }
    vecf origin = mul_f(f->scale, broadcast_f(-DPI_ORIGIN));
    for (int r = 0; r < n; r++)
        acc[r] = fold_add(type, acc[r], sum[r], minus, f, origin, &x[r]);
}

/* The same with a block of n rows from `first` on, acc [n] in memory. */
INLINE void fold_block(const int type, const int n, const fold_rows *rows, int32_t first,
                       float (*acc)[LANES], int64_t at, const vec *c, vec minus, const scales *f) {
    const dpi_folded *x = fold_at(rows, first, n, at);
    vec sum[DPI_ROW_BLOCK];
    fold_begin(type, n, sum, x);
    UNROLL for (int even = 0, alone = DPI_FOLD_STEPS; even < DPI_FOLD_STEPS; even += 2, alone++)
        fold_pair(n, sum, x, even, c[even], c[even + 1], alone, c[alone < 8 ? alone : even]);
    vecf origin = mul_f(f->scale, broadcast_f(-DPI_ORIGIN));
    for (int r = 0; r < n; r++)
        store_f(acc[r], fold_add(type, load_f(acc[r]), sum[r], minus, f, origin, &x[r]), LANES);
}

/* The same with many, acc [rows]. */
INLINE void fold_many(const int type, const int n, const int subs, const fold_rows *rows,
                      float (*acc)[LANES], int64_t at, const words *w, const int sub,
                      const scales *f) {
    vec c[8], minus = broadcast_word(0);
    UNROLL for (int g = 0; g < 8; g++)
        c[g] = ask(type, n, subs, code(type, w, sub, g), w, 8 * sub + g);
    UNROLL for (int g = 0; g < DPI_FOLD_STEPS; g += 2)
        minus = fold_minus(minus, c[g], c[g + 1]);
    int32_t first = 0;
    for (; first < rows->long_rows; first += n)
        fold_block(type, n, rows, first, acc + first, at, c, minus, f);
    for (; n > DPI_FOLD_ROWS && first < rows->rows; first += n - 1)
        fold_block(type, n - 1, rows, first, acc + first, at, c, minus, f);
}

/* The products of `subs` sub-blocks from `at` on, a block or blocks_at_once(); of one block of rows
 * in `few`, or of many in `acc`. */
INLINE void fold_subs(const int type, const int n, const int subs, const fold_rows *rows, vecf *few,
                      float (*acc)[LANES], int64_t at, words w) {
    const int in_turn = turn(type, n, subs), n_turns = subs / in_turn;
    scales ready[8];
    UNROLL for (int i = 0; i < subs; i++)
        ready[i] = scales_of(type, &w, i, 0);
    ask_for_rest(type, n, subs, &w);
    for (int i = 0; i < n_turns; i++) {
        UNROLL for (int sub = 0; sub < in_turn; sub++) {
            const scales *f = &ready[i * in_turn + sub];
            if (few)
                fold_few(type, n, subs, rows, few, at + sub, &w, sub, f);
            else
                fold_many(type, n, subs, rows, acc, at + sub, &w, sub, f);
        }
        at += in_turn;
        words_skip(&w, turn_words(type, n, subs));
    }
}

/* y[r, 0..n_out) for LANES outputs and `rows`; is_few: they are one block of n. */
INLINE void fold_group(const int type, const int n, const bool is_few, const fold_rows *rows,
                       float *y, int64_t y_stride, const unsigned char *w, int32_t n_out) {
    const int lone_bytes = has_lone_half(type) ? 2 * DPI_GROUP : 0, subs = sub_blocks(type);
    const int64_t bytes = 4 * DPI_GROUP * block_words(type), n_subs = rows->subs;
    _Alignas(64) float acc[FOLD_MOST_ROWS][LANES];
    vecf registers[DPI_ROW_BLOCK], *few = is_few ? registers : NULL;
    /* Rows of one block wait for memory. */
    const int asks = is_few ? ASKS_L2_THEN_L1 : ASKS_L1;
    int64_t at = 0;
    for (int r = 0; is_few && r < n; r++)
        registers[r] = zero_f();
    for (int32_t r = 0; !is_few && r < rows->rows; r++)
        store_f(acc[r], zero_f(), LANES);
    if (subs > 1) {
        for (; at < n_subs; at += subs, w += bytes)
            fold_subs(type, n, subs, rows, few, acc, at, words_at(w, w, w, &rows->ahead, asks));
    } else {
        for (; at + 1 < n_subs; at += 2, w += 2 * (lone_bytes + bytes))
            fold_subs(type, n, 2, rows, few, acc, at,
                      words_at(w, w + 2 * lone_bytes, w, &rows->ahead, asks));
        if (at < n_subs)
            fold_subs(type, n, 1, rows, few, acc, at,
                      words_at(w, w + lone_bytes, w, &rows->ahead, asks));
    }
    for (int r = 0; is_few && r < n; r++)
        store_f(y + r * y_stride, registers[r], n_out);
    for (int32_t r = 0; !is_few && r < rows->rows; r++)
        store_f(y + r * y_stride, load_f(acc[r]), n_out);
}

INLINE void folded(const int type, float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                   const unsigned char *w, int64_t n_in, int32_t n_out) {
    const int lone_bytes = has_lone_half(type) ? 2 : 0;
    const int64_t block_bytes = DPI_GROUP * (4 * block_words(type) + lone_bytes);
    const int64_t group_bytes = n_in / (32 * sub_blocks(type)) * block_bytes;
    const distances ahead = asks_for(false, n_rows);
    for (int32_t o = 0; o < n_out; o += LANES, w += group_bytes)
        for (int32_t first = 0; first < n_rows;) {
            fold_rows rows = {.folded = dpi_q8_at(x, first, n_in).folded, .subs = n_in / 32,
                              .ahead = ahead};
            const int32_t n = dpi_row_block(n_rows, first);
            while (first + rows.rows < n_rows && rows.rows + n <= FOLD_MOST_ROWS) {
                int32_t block = dpi_row_block(n_rows, first + rows.rows);
                rows.long_rows += block == n ? n : 0;
                rows.rows += block;
            }
            float *at = y + first * y_stride + o;
#define GROUP(n, is_few) fold_group(type, n, is_few, &rows, at, y_stride, w, n_out - o)
            switch (rows.rows == n ? n : 16 + n) {
            case 6: GROUP(6, true); break;
            case 7: GROUP(7, true); break;
            case 8: GROUP(8, true); break;
            case 9: GROUP(9, true); break;
            case 10: GROUP(10, true); break;
            case 11: GROUP(11, true); break;
            case 16 + 6: GROUP(6, false); break;
            case 16 + 7: GROUP(7, false); break;
            case 16 + 8: GROUP(8, false); break;
            case 16 + 9: GROUP(9, false); break;
            case 16 + 10: GROUP(10, false); break;
            default: GROUP(11, false); break;
            }
#undef GROUP
            first += rows.rows;
        }
}
