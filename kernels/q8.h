/* q8.h - activations in 8 bits, as the products with packed weights read them. Internal.
 *
 * 32 values of a row are a block: q = round(x / d), 8 bits each, with one scale d. The blocks of up
 * to DPI_ROW_BLOCK rows stand side by side, so that a product reads them as one stream. A block
 * also has where integer sums begin, so that a product adds no bias of its own.
 *
 * Winograd products (x86/winograd_products_tmpl.h) have fewer multiplications and the same bits.
 * They read their own blocks. */
#ifndef DPI_Q8_H
#define DPI_Q8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DPI_Q8_BLOCK = 32, /* activations per scale */
    DPI_ROW_BLOCK = 11, /* the most rows that an 8-bit product computes at a time: the 9 of 8
                           references and the public prompt; a third of the 33 of 32 */
};

/* 1.5 * 2^23, whose last bit counts 1. Adding it to a float below 2^22 rounds that to an integer,
 * ties to even; its bits and an integer are the bits of their sum as a float. */
#define DPI_ORIGIN 12582912.0f
enum { DPI_ORIGIN_BITS = 0x4b400000 };

/* ---- Forms ----------------------------------------------------------------------------------- */

/* What is written. PLAIN: |q| <= 127, for any weights. The others are for weights with codes 0 to
 * 15 (dpi_type.is_narrow), and have |q| <= 120, which leaves room for what Winograd products add;
 * 8 scales are compared instead of 4, which makes up for the smaller range. NARROW: plain blocks,
 * WINOGRAD: the other ones, BOTH: both. */
enum { DPI_Q8_PLAIN, DPI_Q8_NARROW, DPI_Q8_WINOGRAD, DPI_Q8_BOTH };

static inline bool dpi_q8_has_plain(int32_t form) { return form != DPI_Q8_WINOGRAD; }
static inline bool dpi_q8_has_winograd(int32_t form) {
    return form == DPI_Q8_WINOGRAD || form == DPI_Q8_BOTH;
}

/* The largest |q|, and how many scales are compared: max|x| / most and the next ones below. */
static inline int32_t dpi_q8_most(int32_t form) { return form == DPI_Q8_PLAIN ? 127 : 120; }
static inline int32_t dpi_q8_levels(int32_t most) { return most == 127 ? 4 : 8; }

/* What makes the sums of squares of scales max|x| / L comparable. */
static inline float dpi_q8_weight(int32_t L) { return 1.0f / (float)(L * L); }

/* Of the 8 steps of four values in a block, those that Winograd products pair, and what is added to
 * the activations of even and odd ones. */
enum { DPI_WINOGRAD_STEPS = 6, DPI_WINOGRAD_EVEN = 120, DPI_WINOGRAD_ODD = -8 };
enum { DPI_WINOGRAD_ROWS = 6 }; /* with fewer rows they take more time than they save */

/* Where sums begin (DPI_ORIGIN), less what a block's offsets add to each other. */
enum {
    DPI_WINOGRAD_ORIGIN =
        DPI_ORIGIN_BITS + 2 * DPI_WINOGRAD_STEPS * DPI_WINOGRAD_EVEN * DPI_WINOGRAD_ODD
};

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* What plain products of all types read of a row's block, a value being d * q: */
typedef struct dpi_q8_plain {
    int32_t q[8]; /* steps of four values each */
    int32_t start_128; /* where sums begin, of codes whose value is code - 128 */
    float d;
} dpi_q8_plain;

/* What those of some types read as well. */
typedef struct dpi_q8_sums {
    int32_t start_32[2]; /* where sums over 16 values begin, of codes whose value is code - 32 */
    float scaled; /* minus d times the sum of q */
} dpi_q8_sums;

/* What Winograd products read. */
typedef struct dpi_q8_winograd {
    int32_t q[8]; /* the first DPI_WINOGRAD_STEPS with what is added to them */
    int32_t start_8, start; /* where sums begin: of codes whose value is code - 8, or the code */
    float d, scaled;
} dpi_q8_winograd;

/* Activations of n_rows rows of n values in 8 bits, n a multiple of 32: sets of up to
 * DPI_ROW_BLOCK rows, one after the other, each array [n / 32, rows]. */
typedef struct dpi_q8 {
    dpi_q8_plain *plain;
    dpi_q8_sums *sums;
    dpi_q8_winograd *winograd; /* NULL: no Winograd products */
} dpi_q8;

/* x as products are to see it, written as `form`. */
static inline dpi_q8 dpi_q8_in(const dpi_q8 *x, int32_t form) {
    dpi_q8 seen = *x;
    if (!dpi_q8_has_winograd(form))
        seen.winograd = NULL;
    return seen;
}

static inline dpi_q8 dpi_q8_skip(const dpi_q8 *x, int64_t n_blocks) {
    return (dpi_q8){x->plain + n_blocks, x->sums + n_blocks,
                    x->winograd ? x->winograd + n_blocks : NULL};
}

/* Writes block `at` in the forms that `form` has: values d * q [32]. sums [2]: of q[0..15] and of
 * q[16..31]. */
void dpi_q8_put(const dpi_q8 *to, int64_t at, int32_t form, const int8_t *q, const int32_t *sums,
                float d);

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Rows in the part that begins at row `first`, where n_rows are cut into parts of at most `most`,
 * as equal as they can be. */
static inline int32_t dpi_equal_part(int32_t n_rows, int32_t most, int32_t first) {
    int32_t n_parts = (n_rows + most - 1) / most;
    int32_t least = n_rows / n_parts, longer = n_rows % n_parts;
    return first < longer * (least + 1) ? least + 1 : least;
}

/* Rows that stand side by side from row `first` on, the first of them. */
static inline int32_t dpi_row_block(int32_t n_rows, int32_t first) {
    return dpi_equal_part(n_rows, DPI_ROW_BLOCK, first);
}

/* The first of the rows that stand side by side with row `row`. */
static inline int32_t dpi_row_block_first(int32_t n_rows, int32_t row) {
    int32_t n_blocks = (n_rows + DPI_ROW_BLOCK - 1) / DPI_ROW_BLOCK;
    int32_t least = n_rows / n_blocks, longer = (n_rows % n_blocks) * (least + 1);
    return row < longer ? row - row % (least + 1) : row - (row - longer) % least;
}

/* The rows that stand side by side from row `first` on. */
static inline dpi_q8 dpi_q8_at(const dpi_q8 *x, int64_t first, int64_t n) {
    return dpi_q8_skip(x, first * (n / DPI_Q8_BLOCK));
}

/* `rows` rows side by side, from value `from` on, a multiple of 32. */
static inline dpi_q8 dpi_q8_from(const dpi_q8 *x, int32_t rows, int64_t from) {
    return dpi_q8_skip(x, from / DPI_Q8_BLOCK * rows);
}

#endif
