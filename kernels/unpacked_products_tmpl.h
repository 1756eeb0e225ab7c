/* unpacked_products_tmpl.h - products of 8-bit activations with packed weights, for more rows than
 * stand side by side (DPI_ROW_BLOCK): up to UNPACKED_SUBS sub-blocks are unpacked once for all
 * rows, whose accumulators wait in the L1 cache. Where each tile of rows unpacks for itself
 * (q_products_tmpl.h), that takes up to a third of its time, since it keeps dots from their pipes.
 *
 * Sums are the integers of q_products_tmpl.h, scaled and added in the same order: the same bits.
 *
 * An ISA file includes this after q_products_tmpl.h, with HAS_UNPACKED 1 and
 *   load_f(p)  LANES floats
 * and gets matmul_unpacked(type, ...). Not a header to include elsewhere. */

enum {
    UNPACKED_MOST_ROWS = 6 * DPI_ROW_BLOCK,
    UNPACKED_SUBS = 8, /* a block of 256 weights, or 8 of 32 */
    UNPACKED_MOST_TILES = UNPACKED_MOST_ROWS / 3 /* parts of 6 to 11 rows, of at most TILE */
};

/* Sub-blocks of LANES outputs. */
typedef struct unpacked {
    vec codes[UNPACKED_SUBS][8];
    scales of[2 * UNPACKED_SUBS]; /* [subs, parts] */
} unpacked;

/* Rows that are multiplied at once. */
typedef struct row_tile {
    dpi_q8 x; /* the first of them */
    int32_t n, rows; /* of `rows` side by side */
    float *acc; /* [n, LANES] */
} row_tile;

typedef struct row_tiles {
    row_tile at[UNPACKED_MOST_TILES];
    int32_t n, n_rows;
} row_tiles;

/* Rows from `first` on, of n_rows, with accumulators acc. */
static row_tiles unpacked_rows(const dpi_q8 *x, int32_t n_rows, int32_t first, int64_t n_in,
                               float (*acc)[LANES]) {
    row_tiles all;
    all.n = all.n_rows = 0;
    for (int32_t rows; first + all.n_rows < n_rows; all.n_rows += rows) {
        rows = dpi_row_block(n_rows, first + all.n_rows);
        if (all.n_rows + rows > UNPACKED_MOST_ROWS)
            break;
        const dpi_q8 block = dpi_q8_at(x, first + all.n_rows, n_in);
        for (int32_t r = 0, n; r < rows; r += n) {
            n = dpi_equal_part(rows, TILE, r);
            all.at[all.n++] = (row_tile){dpi_q8_skip(&block, r), n, rows, acc[all.n_rows + r]};
        }
    }
    return all;
}

/* Sub-block `first` and the next ones, the whole block or blocks of `subs`. */
INLINE void unpack(const int type, const int subs, const words *w, unpacked *u, int first) {
    const int parts = scales_per_32(type);
    UNROLL for (int i = 0; i < subs * parts; i++)
        u->of[parts * first + i] = scales_of(type, w, i / parts, i % parts);
    UNROLL for (int sub = 0; sub < subs; sub++)
        UNROLL for (int g = 0; g < 8; g++)
            u->codes[first + sub][g] = code(type, w, sub, g);
}

INLINE void unpacked_tile(const int type, const int n, const row_tile *t, int64_t at,
                          const unpacked *u, int subs) {
    const int parts = scales_per_32(type);
    const dpi_q8 x = dpi_q8_skip(&t->x, at * t->rows);
    vecf acc[TILE];
    for (int r = 0; r < n; r++)
        acc[r] = load_f(t->acc + r * LANES);
    for (int sub = 0; sub < subs; sub++)
        add_sub_blocks(type, n, 0, acc, NULL, 1, 0, x.plain + sub * t->rows,
                       x.sums + sub * t->rows, u->of + parts * sub, u->codes[sub]);
    for (int r = 0; r < n; r++)
        store_f(t->acc + r * LANES, acc[r], LANES);
}

/* Sub-blocks [at, at + subs). The tiles share in prefetching what is unpacked next, n_bytes from
 * `next` on, or lines would wait for each other. */
INLINE void unpacked_tiles(const int type, const row_tiles *rows, int64_t at, const unpacked *u,
                           int subs, const unsigned char *next, int64_t n_bytes) {
    const int64_t share = (n_bytes / rows->n + 63) / 64 * 64;
    for (int32_t i = 0; i < rows->n; i++, next += share) {
        const row_tile *t = &rows->at[i];
        for (int64_t line = 0; line < share; line += 64)
            __builtin_prefetch(next + line, 0, 2);
/* Parts of what TILE rows do not hold have half of them at least. */
#define OF_ROWS(n_)                                                                                \
    case n_:                                                                                       \
        if (2 * n_ >= TILE && n_ <= TILE)                                                          \
            unpacked_tile(type, n_ <= TILE ? n_ : TILE, t, at, u, subs);                           \
        break
        switch (t->n) {
            OF_ROWS(3);
            OF_ROWS(4);
            OF_ROWS(5);
            OF_ROWS(6);
            OF_ROWS(7);
            OF_ROWS(8);
            OF_ROWS(9);
            OF_ROWS(10);
            OF_ROWS(11);
        default: break; /* DPI_ROW_BLOCK is 11 */
        }
#undef OF_ROWS
    }
}

/* The accumulators of LANES outputs, from `lane` of the panel on. */
INLINE void unpacked_panel(const int type, const row_tiles *rows, const unsigned char *w,
                           const int lane, int64_t n_in) {
    const int scale_bytes = has_block_scale(type) ? 2 * DPI_PANEL_ROWS : 0, subs = sub_blocks(type);
    const int64_t bytes = 4 * DPI_PANEL_ROWS * block_words(type);
    const int64_t n_bytes = UNPACKED_SUBS / subs * (bytes + scale_bytes);
    unpacked u;
    int64_t at = 0;
    int ready = 0;
    for (int64_t left = n_in / (32 * subs); left > 0;) {
        const int pair = left > 1 ? 2 : 1; /* whose block scales stand side by side */
        const int at_once = subs > 1 ? 1 : pair;
        const unsigned char *of = w + 2 * lane;
        w += pair * scale_bytes;
        for (int blocks = 0; blocks < pair; blocks += at_once) {
            const words from = {.scales = of + blocks * scale_bytes, .at = w + 4 * lane,
                                .prefetch = PREFETCH_DONE};
            if (at_once == 1)
                unpack(type, subs, &from, &u, ready);
            else
                unpack(type, 2, &from, &u, ready);
            w += at_once * bytes;
            ready += at_once * subs;
            if (ready == UNPACKED_SUBS || left == pair) {
                unpacked_tiles(type, rows, at, &u, ready, w, n_bytes);
                at += ready;
                ready = 0;
            }
        }
        left -= pair;
    }
}

INLINE void matmul_unpacked(const int type, float *y, int64_t y_stride, const dpi_q8 *x,
                            int32_t n_rows, const unsigned char *w, int64_t n_in, int32_t n_out) {
    const int scale_bytes = has_block_scale(type) ? 2 : 0;
    const int64_t block_bytes = DPI_PANEL_ROWS * (4 * block_words(type) + scale_bytes);
    const int64_t panel_bytes = n_in / (32 * sub_blocks(type)) * block_bytes;
    _Alignas(64) float acc[UNPACKED_MOST_ROWS][LANES];
    row_tiles rows;
    for (int32_t first = 0; first < n_rows; first += rows.n_rows) {
        rows = unpacked_rows(x, n_rows, first, n_in, acc);
        for (int32_t o = 0; o < n_out; o += LANES) {
            const int lane = o % DPI_PANEL_ROWS;
            float *to = y + first * y_stride + o;
            for (int32_t r = 0; r < rows.n_rows; r++)
                store_f(acc[r], zero_f(), LANES);
            unpacked_panel(type, &rows, w + o / DPI_PANEL_ROWS * panel_bytes, lane, n_in);
            for (int32_t r = 0; r < rows.n_rows; r++)
                store_f(to + r * y_stride, load_f(acc[r]), n_out - o);
        }
    }
}
