/* q_products_tmpl.h - products of 8-bit activations with packed weights, written once for every
 * ISA.
 *
 * One vector holds four consecutive weights of each of LANES output rows (pack.h); a dot
 * instruction multiplies them with four activations of one sequence, broadcast from memory. A
 * weight is loaded and unpacked once for up to TILE sequences.
 *
 * Sums of 32 (or 16) products are exact integers; they are scaled and added in f32 in one fixed
 * order, block after block, whatever the number of sequences.
 *
 * An ISA file defines, then includes this:
 *   HAS_WINOGRAD (1: it includes winograd_products_tmpl.h afterwards)
 *   HAS_UNPACKED (1: it includes unpacked_products_tmpl.h afterwards)
 *   HAS_PAIRS (1: an instruction multiplies 8 weights of two rows with 8 activations of two
 *   sequences, whose sums add up in 32 bits)
 *   LANES, TILE, SIGNED_CODES (0: the dot wants unsigned weights, so 128 is added to those of
 *   types whose values are signed bytes), vec (integers), vecf (LANES floats), and the static
 *   functions
 *     load_word(p)              LANES words from p
 *     dot_words(sum, weights, x)  sum + products of four bytes of each lane with the four at x, if
 *                               !SIGNED_CODES; else
 *     sums, sums_from(v), sums_total(sums)  what dots add up in, a type; v so far; after all steps
 *     dot(sums, weights, x, signed_weights, step, at_once, in_order)
 *                               adds the products of four bytes of each lane with the four at x;
 *                               those of step - step % 4 stand at x - step % 4. The sums of two
 *                               products of `at_once` dots, which divides the steps, stay < 2^15.
 *                               in_order: dot after dot is added. Else GCC makes a tree and spills
 *                               what waits: of several sequences 1/5 more time (Zen 3)
 *     and_bytes(v, mask)  add_high_bits(low, bits, g)  iq4_values(codes)  flip_sign(bytes)
 *     shift_left16 / shift_right16 (v, n)    within 16-bit pairs of bytes; or_bits
 *     broadcast_word(x)  shift_left32 / shift_right32 / shift_right32_signed (v, n)
 *     and_words(v, mask) sub_words(v, n)
 *     HAS_PAIRS: low_rows(a, b) high_rows(a, b)  the weights of two steps, of the first or the last
 *     two of four rows; two_sequences(x, y)  8 activations of each; dot_pairs(sum, rows, x);
 *     pair_sums(a, b)  from the sums of two sequences to those of the first and of the last rows,
 *     of both; part_sums(a, b)  back
 *     to_float(v)  low_f16(v) high_f16(v)  the f16 at the low or high end of each word, as f32
 *     as_float(v)  the same bits; load_f16s(p)  mul_f fma_f sub_f broadcast_f zero_f
 *     store_f(p, v, n)  the first n lanes, none if n <= 0
 *     PREFETCH_L1(v, at) PREFETCH_L2 PREFETCH_ONCE   as x86/prefetch.h has them
 * and afterwards defines tiles(), and uses matmul_q(type, ...). Not a header to include elsewhere.
 */

#include "kernels/order.h"

#define UNROLL_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define UNROLL UNROLL_PRAGMA(clang loop unroll(full))
#else
#define UNROLL UNROLL_PRAGMA(GCC unroll 64)
#endif

#if !SIGNED_CODES /* one instruction adds up in 32 bits */
typedef vec sums;
INLINE sums sums_from(vec v) { return v; }
INLINE vec sums_total(sums sum) { return sum; }
INLINE sums dot(sums sum, vec weights, const int32_t *x, const int signed_weights, const int step,
                const int at_once, const int in_order) {
    (void)signed_weights, (void)step, (void)at_once, (void)in_order;
    return dot_words(sum, weights, x);
}
#endif

#include "kernels/weight_codes_tmpl.h"

/* ---- Products -------------------------------------------------------------------------------- */

/* Prefetches the share of step `step`, which multiplies with c, in a round's words: one line after
 * the other, never many at once, which would keep the core from reading anything else. GCC gathers
 * prefetches that it may move, all of a block of Q6_K. It does not move those that seem to change
 * c. */
INLINE vec prefetch_step(const int type, const int n, const int subs, vec c, const words *w,
                         const int step) {
    const int lines = unrolled_words(type, n, subs), steps = 8 * unrolled(type, n, subs);
    if (w->prefetch <=
        PREFETCH_DONE) { /* but words are read in their order, as the hardware expects */
        AFTER_LOAD(c, *w->at);
        return c;
    }
    UNROLL for (int i = step * lines / steps; i < (step + 1) * lines / steps; i++) {
        PREFETCH_L1(c, w->l1[4 * DPI_PANEL_ROWS * i]);
        if (w->prefetch == PREFETCH_L2_L1)
            PREFETCH_L2(c, w->l2[4 * DPI_PANEL_ROWS * i]);
    }
    return c;
}

/* Prefetches what the rounds of `subs` sub-blocks do not. */
INLINE void prefetch_rest(const int type, const int n, const int subs, const words *w) {
    const int lines = block_words(type) * subs / sub_blocks(type) + has_block_scale(type);
    if (w->prefetch <= PREFETCH_DONE)
        return;
    UNROLL for (int i = subs / unrolled(type, n, subs) * unrolled_words(type, n, subs); i < lines;
                i++) {
        __builtin_prefetch(w->l1 + 4 * DPI_PANEL_ROWS * i);
        if (w->prefetch == PREFETCH_L2_L1)
            __builtin_prefetch(w->l2 + 4 * DPI_PANEL_ROWS * i, 0, 2);
    }
}

/* How many bits less the bias of a type has than that of the sums that stand ready. */
INLINE int less_bits(const int type) {
    return (scales_per_32(type) == 2 ? 5 : 7) - bias_bits(type);
}

/* Where a sub-block's sum, or that over its 16 weights from 16 h on, begins: at the bits of
 * DPI_ORIGIN, less what the bias of the codes adds to it. |sum| < 2^22, so that it ends as a float,
 * DPI_ORIGIN + sum, without a conversion. What a scale makes of DPI_ORIGIN is exact (a scale has at
 * most 19 bits) and goes away in the same fma. */
INLINE int32_t begin_sum(const int type, const dpi_q8_plain *x, const dpi_q8_sums *more,
                         const int h) {
    const int32_t start = scales_per_32(type) == 2 ? more->start_32[h] : x->start_128;
    if (bias_bits(type) == 0)
        return DPI_ORIGIN_BITS;
    return ((start - DPI_ORIGIN_BITS) >> less_bits(type)) + DPI_ORIGIN_BITS;
}

/* Minus the sum of q over the 16 values from 16 h on. */
INLINE float negative(const dpi_q8_sums *x, const int h) {
    return (float)((x->start_32[h] - DPI_ORIGIN_BITS) >> 5);
}

#if HAS_PAIRS
/* sum[k * n + r] += the products of `steps` steps from `g` on: of two steps and two sequences at a
 * time, whose sums stand in two vectors of two rows each meanwhile. */
INLINE void add_pairs(const int type, const int n, const int all, sums *sum, const words *w,
                      const int first, const dpi_q8_plain **at, const int from, const int steps,
                      const int subs) {
    UNROLL for (int k = 0; k < subs; k++) {
        sums *of = sum + k * n;
        for (int r = 0; r + 1 < n; r += 2)
            pair_sums(&of[r], &of[r + 1]);
        UNROLL for (int g = from; g < from + steps; g += 2) {
            vec c0 = code(type, w, first + k, g), c1 = code(type, w, first + k, g + 1);
            c0 = prefetch_step(type, n, all, c0, w, 8 * (first + k) + g);
            c1 = prefetch_step(type, n, all, c1, w, 8 * (first + k) + g + 1);
            const vec low = low_rows(c0, c1), high = high_rows(c0, c1);
            for (int r = 0; r + 1 < n; r += 2) {
                const vec x = two_sequences(&at[k][r].q[g], &at[k][r + 1].q[g]);
                of[r] = dot_pairs(of[r], low, x);
                of[r + 1] = dot_pairs(of[r + 1], high, x);
            }
            if (n % 2) {
                of[n - 1] = dot(of[n - 1], c0, &at[k][n - 1].q[g], 1, g, 1, 0);
                of[n - 1] = dot(of[n - 1], c1, &at[k][n - 1].q[g + 1], 1, g + 1, 1, 0);
            }
        }
        for (int r = 0; r + 1 < n; r += 2)
            part_sums(&of[r], &of[r + 1]);
    }
}
#endif

/* acc[r] += the products of the interleaved sub-blocks of a round from `first` on, for n sequences,
 * the ones from x on of `rows` side by side; `all`: sub-blocks of the block; `ready`: the round's
 * scales, or NULL; codes [8]: of the one sub-block, or NULL: they are still packed. */
INLINE void add_sub_blocks(const int type, const int n, const int rows, vecf *acc, const words *w,
                           const int all, const int first, const dpi_q8_plain *x,
                           const dpi_q8_sums *sums_of_x, const scales *ready, const vec *codes) {
    const int parts = scales_per_32(type), steps = 8 / parts, subs = interleaved(type, n, all);
    const dpi_q8_plain *at[8]; /* of sub-block first + k, the first sequence */
    const dpi_q8_sums *more[8];
    UNROLL for (int k = 0; k < subs; k++) {
        at[k] = x + k * rows;
        more[k] = sums_of_x + k * rows;
        if (n > 1)
            HELD(at[k]); /* a pointer each: displacements stay short */
    }
    /* Of sub-block first + k and sequence r at [k * n + r]: */
    vecf scaled[2 * TILE]; /* a sub-block's products in units of the activations' scale */
    const int computed = n > 1 && bias_bits(type) && less_bits(type);
    UNROLL for (int h = 0; h < parts; h++) {
        sums sum[2 * TILE];
        int32_t start[2 * TILE];
        if (computed) {
            UNROLL for (int k = 0; k < subs; k++)
                for (int r = 0; r < n; r++)
                    start[k * n + r] = begin_sum(type, &at[k][r], &more[k][r], h);
            /* In memory: what else brings a number into a vector keeps dots waiting. */
            IN_MEMORY(start);
        }
        UNROLL for (int k = 0; k < subs; k++)
            for (int r = 0; r < n; r++)
                sum[k * n + r] = sums_from(broadcast_word(
                    computed ? start[k * n + r] : begin_sum(type, &at[k][r], &more[k][r], h)));
#if HAS_PAIRS
        if (n > 1)
            add_pairs(type, n, all, sum, w, first, at, h * steps, steps, subs);
        else
#endif
            UNROLL for (int s = 0; s < steps; s++) {
                const int g = h * steps + s;
                UNROLL for (int k = 0; k < subs; k++) {
                    vec c = codes ? codes[g] : code(type, w, first + k, g);
                    if (!codes)
                        c = prefetch_step(type, n, all, c, w, 8 * (first + k) + g);
                    for (int r = 0; r < n; r++)
                        sum[k * n + r] = dot(sum[k * n + r], c, &at[k][r].q[g],
                                             SIGNED_CODES && signed_values(type), s,
                                             dots_at_once(type), n > 1);
                }
            }
        UNROLL for (int k = 0; k < subs; k++) {
            scales f = ready ? ready[parts * (first + k) + h]
                             : scales_of(type, w, first + k, h);
            vecf origin = mul_f(f.scale, broadcast_f(-DPI_ORIGIN));
            for (int r = 0; r < n; r++) {
                const int i = k * n + r;
                vecf v = as_float(sums_total(sum[i]));
                scaled[i] = h == 0 ? fma_f(f.scale, v, origin)
                                   : fma_f(f.scale, sub_f(v, broadcast_f(DPI_ORIGIN)), scaled[i]);
                if (has_min(type) && parts == 1)
                    acc[r] = fma_f(f.min, broadcast_f(more[k][r].scaled), acc[r]);
                if (has_min(type) && parts == 2)
                    scaled[i] = fma_f(f.min, broadcast_f(negative(&more[k][r], h)), scaled[i]);
                if (parts == 1)
                    acc[r] = fma_f(scaled[i], broadcast_f(at[k][r].d), acc[r]);
            }
        }
    }
    UNROLL for (int k = 0; k < subs && parts == 2; k++)
        for (int r = 0; r < n; r++)
            acc[r] = fma_f(scaled[k * n + r], broadcast_f(at[k][r].d), acc[r]);
}

/* acc[r] += the products of `blocks` blocks. */
INLINE void add_blocks(const int type, const int n, const int blocks, const int rows, vecf *acc,
                       words w, const dpi_q8_plain *x, const dpi_q8_sums *sums_of_x) {
    const int subs = sub_blocks(type) * blocks, parts = scales_per_32(type);
    const int at_once = interleaved(type, n, subs), per_round = unrolled(type, n, subs);
    const int n_rounds = subs / per_round;
    /* Unpacked for the whole block where sub-blocks would read the same words of scales again. */
    const int is_ready = n_rounds > 1 || type == DPI_TYPE_Q4_K;
    scales ready[16];
    if (is_ready)
        UNROLL for (int i = 0; i < subs * parts; i++)
            ready[i] = scales_of(type, &w, i / parts, i % parts);
    prefetch_rest(type, n, subs, &w);
    for (int i = 0; i < n_rounds; i++) {
        UNROLL for (int sub = 0; sub < per_round; sub += at_once) {
            add_sub_blocks(type, n, rows, acc, &w, subs, sub, x, sums_of_x,
                           is_ready ? ready + i * per_round * parts : NULL, NULL);
            x += at_once * rows;
            sums_of_x += at_once * rows;
        }
        words_skip(&w, unrolled_words(type, n, subs));
    }
}

/* y[r, 0..n_out) for vectors(n) * LANES outputs and n sequences of `rows` side by side; `prefetch`:
 * PREFETCH_.. */
INLINE void tile_that(const int prefetch, const int type, const int n, const int rows, float *y,
                      int64_t y_stride, dpi_q8 x, source from, int64_t n_in, int32_t n_out) {
    const int scale_bytes = has_block_scale(type) ? 2 * DPI_PANEL_ROWS : 0;
    const int64_t block_bytes = scale_bytes + 4 * DPI_PANEL_ROWS * block_words(type);
    const int at_once = blocks_at_once(type);
    const int64_t share = from.passes > 1 ? at_once * block_bytes / from.passes : 0;
    int64_t n_blocks = n_in / (32 * sub_blocks(type));
    const unsigned char *w = from.panel;
    vecf acc[DPI_PANEL_ROWS / LANES][TILE];
    for (int v = 0; v < vectors(n); v++)
        for (int r = 0; r < n; r++)
            acc[v][r] = zero_f();
    for (int64_t left = n_blocks; left > 0;) {
        const unsigned char *first_scales = w; /* of the next two blocks, or of the last */
        w += left > 1 ? 2 * scale_bytes : scale_bytes;
        for (int64_t pair = left > 1 ? 2 : 1; pair > 0;) {
            words at =
                words_at(first_scales + 2 * from.lane, w + 4 * from.lane, w, &from.ahead, prefetch);
            /* Or GCC keeps each prefetch's distance, on the stack. */
            HELD_BOTH(at.l1, at.l2);
            int blocks = 1;
            for (int64_t i = 0; i < share; i += 64)
                __builtin_prefetch(from.next + i, 0, 2);
            from.next += share;
            UNROLL for (int v = 0; v < vectors(n); v++) {
                if (at_once == 2 && pair == 2) {
                    add_blocks(type, n, 2, rows, acc[v], at, x.plain, x.sums);
                    blocks = 2;
                } else {
                    add_blocks(type, n, 1, rows, acc[v], at, x.plain, x.sums);
                }
                at.scales += 2 * LANES;
                at.at += 4 * LANES;
                at.prefetch = prefetch == PREFETCH_NONE ? PREFETCH_NONE : PREFETCH_DONE;
            }
            x = dpi_q8_skip(&x, blocks * sub_blocks(type) * rows);
            first_scales += blocks * scale_bytes;
            w += blocks * 4 * DPI_PANEL_ROWS * block_words(type);
            left -= blocks;
            pair -= blocks;
        }
    }
    for (int v = 0; v < vectors(n); v++)
        for (int r = 0; r < n; r++)
            store_f(y + r * y_stride + v * LANES, acc[v][r], n_out - v * LANES);
}

INLINE void tile(const int type, const int n, const int rows, float *y, int64_t y_stride, dpi_q8 x,
                 source from, int64_t n_in, int32_t n_out) {
    /* Larger tiles are almost always of batches that need several. */
    const int prefetch =
        vectors(n) * LANES == DPI_PANEL_ROWS && n <= 9 ? PREFETCH_L2_L1 : PREFETCH_L1;
    if (is_stream(type, n) && from.ahead.l1 == 0)
        tile_that(PREFETCH_NONE, type, n, rows, y, y_stride, x, from, n_in, n_out);
    else
        tile_that(prefetch, type, n, rows, y, y_stride, x, from, n_in, n_out);
}

/* Cuts a block of `rows` rows into tiles of constant size: the ISA file's. */
INLINE void tiles(const int type, int rows, float *y, int64_t y_stride, dpi_q8 x, source from,
                  int64_t n_in, int32_t n_out);

#if HAS_WINOGRAD
INLINE void matmul_winograd(const int type, float *y, int64_t y_stride, const dpi_q8 *x,
                            int32_t n_rows, const unsigned char *w, int64_t n_in, int32_t n_out,
                            const dpi_tuning *tuning);
#endif

#if HAS_UNPACKED
INLINE void matmul_unpacked(const int type, float *y, int64_t y_stride, const dpi_q8 *x,
                            int32_t n_rows, const unsigned char *w, int64_t n_in, int32_t n_out);
#endif

INLINE void matmul_q(const int type, float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                     const void *w, int64_t n_in, int32_t n_out, const dpi_tuning *tuning) {
#if HAS_WINOGRAD
    if (is_narrow(type) && x->winograd && n_rows >= DPI_WINOGRAD_ROWS) {
        matmul_winograd(type, y, y_stride, x, n_rows, w, n_in, n_out, tuning);
        return;
    }
#endif
#if HAS_UNPACKED
    if (is_composed(type) && n_rows > DPI_ROW_BLOCK) {
        matmul_unpacked(type, y, y_stride, x, n_rows, w, n_in, n_out);
        return;
    }
#endif
    const int scale_bytes = has_block_scale(type) ? 2 : 0;
    int64_t n_blocks = n_in / (32 * sub_blocks(type));
    int64_t panel_bytes = DPI_PANEL_ROWS * n_blocks * (4 * block_words(type) + scale_bytes);
    source from = {.panel = w};
    const int lanes = vectors(n_rows) * LANES;
    from.passes = DPI_PANEL_ROWS / lanes * ((n_rows + DPI_ROW_BLOCK - 1) / DPI_ROW_BLOCK);
    from.ahead = tuning->quantized[is_stream(type, n_rows)][n_rows == 1];
    if (from.passes > 1)
        from.ahead.l2 = 0;
    for (int32_t o = 0; o < n_out; o += DPI_PANEL_ROWS, from.panel += panel_bytes) {
        int32_t pass = 0;
        for (int32_t first = 0, rows; first < n_rows; first += rows) {
            rows = dpi_row_block(n_rows, first);
            dpi_q8 block = dpi_q8_at(x, first, n_in);
            for (from.lane = 0; from.lane < DPI_PANEL_ROWS && o + from.lane < n_out;
                 from.lane += lanes, pass++) {
                from.next = from.panel + panel_bytes + panel_bytes * pass / from.passes;
                tiles(type, rows, y + first * y_stride + o + from.lane, y_stride, block, from,
                      n_in, n_out - o - from.lane);
            }
        }
    }
}
