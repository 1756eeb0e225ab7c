/* kernels.h - the dispatch table of the arithmetic kernels. Internal.
 *
 * kernels/ knows arrays, not models. ref.c fills the table with readable scalar C; each ISA file
 * overrides the slots that it improves. The contracts are in kernels.def. */
#ifndef DPI_KERNELS_H
#define DPI_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/isa.h"
#include "kernels/exact.h"
#include "kernels/quant.h"

#ifdef __FAST_MATH__
#error "dpinfer's guarantees need IEEE arithmetic: build without -ffast-math"
#endif

enum {
    DPI_KV_BLOCK = 64, /* positions per block of a KV cache, and per softmax block */
    DPI_KV_GROUP = 16, /* positions whose K stand side by side */
    DPI_Q8_BLOCK = 32, /* activations per scale */
    DPI_TILE_ROWS = 4, /* rows that an f32 matmul tile holds in registers */
    DPI_ROW_BLOCK = 11, /* the most rows that an 8-bit product takes at a time: the 9 of 8
                           references and the public prompt; a third of the 33 of 32 */
    DPI_FLOOR_BITS = 40, /* no weight of the sampler is below 2^40 */
};

/* 1.5 * 2^23, whose last bit counts 1. Adding it to a float below 2^22 rounds that to an integer,
 * ties to even; its bits and an integer are the bits of their sum as a float. */
#define DPI_ORIGIN 12582912.0f
enum { DPI_ORIGIN_BITS = 0x4b400000 };

/* Where value i of position j stands in K (attend_f32 in kernels.def). */
static inline int64_t dpi_kv_k_at(int32_t j, int64_t i, int32_t head_dim) {
    return (int64_t)(j / DPI_KV_GROUP * DPI_KV_GROUP) * head_dim + i * DPI_KV_GROUP +
           j % DPI_KV_GROUP;
}

/* What a gap of utilities is cut to before it is multiplied by a: no more than 69 bits count. */
static inline int64_t dpi_gap_max(uint64_t a) { return (int64_t)((UINT64_C(69) << 48) / a + 1); }

/* What 8-bit activations are for. Of weights of 4 bits (dpi_type_folds) their range is a little
 * shorter, so that those may be folded into them, for which more scales make good. */
enum { DPI_Q8_PLAIN, DPI_Q8_OF_4_BITS, DPI_Q8_FOLDED, DPI_Q8_BOTH };

static inline bool dpi_q8_is_plain(int32_t form) { return form != DPI_Q8_FOLDED; }
static inline bool dpi_q8_is_folded(int32_t form) {
    return form == DPI_Q8_FOLDED || form == DPI_Q8_BOTH;
}

/* The largest |q|, and how many scales are tried: max|x| / most and the next ones below. */
static inline int32_t dpi_q8_most(int32_t form) { return form == DPI_Q8_PLAIN ? 127 : 120; }
static inline int32_t dpi_q8_levels(int32_t most) { return most == 127 ? 4 : 8; }

/* What makes the sums of squares of scales max|x| / L comparable. */
static inline float dpi_q8_weight(int32_t L) { return 1.0f / (float)(L * L); }

/* Folded products (fold_products.h): steps of four values, of the 8 of a sub-block, that are folded
 * in pairs, and what is added to the activations of even and odd ones. */
enum { DPI_FOLD_STEPS = 6, DPI_FOLD_EVEN = 120, DPI_FOLD_ODD = -8 };
enum { DPI_FOLD_ROWS = 6 }; /* with fewer rows folding takes longer than it saves */

/* Where sums begin (DPI_ORIGIN), less what a sub-block's offsets add to each other. */
enum { DPI_FOLD_ORIGIN = DPI_ORIGIN_BITS + 2 * DPI_FOLD_STEPS * DPI_FOLD_EVEN * DPI_FOLD_ODD };

/* What products of all types read of a row's sub-block, a value being d * q: */
typedef struct dpi_plain {
    int32_t q[8]; /* steps of four values each */
    int32_t start_128; /* where sums begin, of codes whose value is code - 128 */
    float d;
} dpi_plain;

/* What those of some types read beside. */
typedef struct dpi_sums {
    int32_t start_32[2]; /* where sums over a half begin, of codes whose value is code - 32 */
    float scaled; /* minus d times the sum of q */
} dpi_sums;

/* What folded products read. */
typedef struct dpi_folded {
    int32_t q[8]; /* the first DPI_FOLD_STEPS with what is added to them */
    int32_t start_8, start; /* where sums begin: of codes whose value is code - 8, or the code */
    float d, scaled;
} dpi_folded;

/* Activations of n_rows rows of n values in 8 bits, n a multiple of 32: blocks of up to
 * DPI_ROW_BLOCK rows, one after the other, each array [n / 32, rows]. */
typedef struct dpi_q8 {
    dpi_plain *plain;
    dpi_sums *sums;
    dpi_folded *folded; /* NULL: products are not to be folded */
} dpi_q8;

/* x as products are to see it, brought into `form`. */
static inline dpi_q8 dpi_q8_in(const dpi_q8 *x, int32_t form) {
    dpi_q8 seen = *x;
    if (!dpi_q8_is_folded(form))
        seen.folded = NULL;
    return seen;
}

/* Whether products with weights of a GGML type may be folded: their codes are 0 to 15. */
static inline bool dpi_type_folds(uint32_t type) {
    return type == DPI_TYPE_Q4_0 || type == DPI_TYPE_Q4_1 || type == DPI_TYPE_Q4_K;
}

/* Rows in the part that begins at row `first`, where n_rows are cut into parts of at most `most`,
 * as equal as they can be. */
static inline int32_t dpi_equal_part(int32_t n_rows, int32_t most, int32_t first) {
    int32_t n_parts = (n_rows + most - 1) / most;
    int32_t least = n_rows / n_parts, longer = n_rows % n_parts;
    return first < longer * (least + 1) ? least + 1 : least;
}

/* Rows in the block that begins at row `first`. */
static inline int32_t dpi_row_block(int32_t n_rows, int32_t first) {
    return dpi_equal_part(n_rows, DPI_ROW_BLOCK, first);
}

/* First row of the block that row `row` is in. */
static inline int32_t dpi_row_block_first(int32_t n_rows, int32_t row) {
    int32_t n_blocks = (n_rows + DPI_ROW_BLOCK - 1) / DPI_ROW_BLOCK;
    int32_t least = n_rows / n_blocks, longer = (n_rows % n_blocks) * (least + 1);
    return row < longer ? row - row % (least + 1) : row - (row - longer) % least;
}

static inline dpi_q8 dpi_q8_skip(const dpi_q8 *x, int64_t n_records) {
    return (dpi_q8){x->plain + n_records, x->sums + n_records,
                    x->folded ? x->folded + n_records : NULL};
}

/* The block that begins at row `first`. */
static inline dpi_q8 dpi_q8_at(const dpi_q8 *x, int64_t first, int64_t n) {
    return dpi_q8_skip(x, first * (n / DPI_Q8_BLOCK));
}

/* A block of `rows` rows from value `from` on, a multiple of 32. */
static inline dpi_q8 dpi_q8_from(const dpi_q8 *block, int32_t rows, int64_t from) {
    return dpi_q8_skip(block, from / DPI_Q8_BLOCK * rows);
}

/* The types that have packed products: TYPE(name in kernels.def, GGML type id). */
#define DPI_MATMUL_Q_TYPES(TYPE)                                                                  \
    TYPE(q8_0, DPI_TYPE_Q8_0)                                                                     \
    TYPE(q4_0, DPI_TYPE_Q4_0)                                                                     \
    TYPE(q4_1, DPI_TYPE_Q4_1)                                                                     \
    TYPE(q5_0, DPI_TYPE_Q5_0)                                                                     \
    TYPE(q5_1, DPI_TYPE_Q5_1)                                                                     \
    TYPE(q2_k, DPI_TYPE_Q2_K)                                                                     \
    TYPE(q3_k, DPI_TYPE_Q3_K)                                                                     \
    TYPE(q4_k, DPI_TYPE_Q4_K)                                                                     \
    TYPE(q5_k, DPI_TYPE_Q5_K)                                                                     \
    TYPE(q6_k, DPI_TYPE_Q6_K)                                                                     \
    TYPE(iq4_nl, DPI_TYPE_IQ4_NL)                                                                 \
    TYPE(iq4_xs, DPI_TYPE_IQ4_XS)

/* The same of weights of 16 bits, whose activations stay f32. */
#define DPI_MATMUL_H_TYPES(TYPE)                                                                  \
    TYPE(f16, DPI_TYPE_F16)                                                                       \
    TYPE(bf16, DPI_TYPE_BF16)

typedef struct dpi_kernels {
    int32_t isa; /* a dpi_isa other than AUTO */
    bool folds; /* to fold products from DPI_FOLD_ROWS rows on; they have the same bits. Only where
                   a filled table says so: others read plain activations alone */
#define KERNEL(name, parameters) void(*name) parameters;
#include "kernels/kernels.def"
#undef KERNEL
    /* What the processor can do at best, for benchmarks: a read of n bytes (a multiple of 256), and
     * `steps` rounds of independent multiply-adds on registers, whose number of operations they
     * return. The results only keep the compiler from leaving the work out. NULL: unknown. */
    uint64_t (*probe_read)(const void *p, size_t n);
    double (*probe_int8)(int64_t steps, int32_t *result);
    double (*probe_f32)(int64_t steps, float *result);
} dpi_kernels;

/* Writes record `at` in the forms that `form` wants: values d * q, q [32], whose halves add up to
 * sums [2]. */
void dpi_q8_put(const dpi_q8 *to, int64_t at, int32_t form, const int8_t *q, const int32_t *sums,
                float d);

/* Fills the table for `isa` (AUTO: the best). Errors: ARG (not a dpi_isa), UNSUPPORTED (the
 * processor or the build lacks it). */
dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err);

/* Turns off `folds` if folding is no faster on this processor, which it measures: 0.3 ms. Errors:
 * MEMORY. */
dpi_status dpi_kernels_choose(dpi_kernels *kernels, dpi_error *err);

/* One per ISA file: overrides slots of a filled table. */
void dpi_kernels_init_ref(dpi_kernels *kernels);
void dpi_kernels_init_avx2(dpi_kernels *kernels);
void dpi_kernels_init_avx512(dpi_kernels *kernels);
void dpi_kernels_init_ref_q(dpi_kernels *kernels);
void dpi_kernels_init_avx2_q(dpi_kernels *kernels);
void dpi_kernels_init_avxvnni_q(dpi_kernels *kernels);
void dpi_kernels_init_avx512_q(dpi_kernels *kernels);
void dpi_kernels_init_ref_sampler(dpi_kernels *kernels);
void dpi_kernels_init_avx2_sampler(dpi_kernels *kernels);
void dpi_kernels_init_avx512_sampler(dpi_kernels *kernels);

typedef void dpi_matmul_q_fn(float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                             const void *w, int64_t n_in, int32_t n_out);
typedef void dpi_matmul_h_fn(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                             int32_t n_rows, const void *w, int64_t n_in, int32_t n_out);
/* The slot for packed weights of a GGML type; NULL if there is none. */
dpi_matmul_q_fn *dpi_kernels_matmul_q(const dpi_kernels *kernels, uint32_t type);
dpi_matmul_h_fn *dpi_kernels_matmul_h(const dpi_kernels *kernels, uint32_t type);

#endif
