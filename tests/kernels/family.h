/* family.h - what the test and the timing of kernels share: one description of each kernel of
 * kernels.def, its check beside its timing, a file for each family of them.
 *
 * test_kernels.c runs the checks, of one ISA against ref.c; bench_kernels.c times the calls. */
#ifndef KERNEL_FAMILY_H
#define KERNEL_FAMILY_H

#include "kernels/kernels.h"
#include "tests/support/support.h"

static const double EPS = 1.1920929e-7; /* of an f32 */

/* ---- Rectangles ------------------------------------------------------------------------------ */

/* [rows, cols] elements, rows `stride` apart, with guard bytes before the first row, between rows
 * and after the last one. */
typedef struct rect {
    unsigned char *memory;
    void *at; /* the first element */
    int64_t rows, cols, stride;
    size_t size; /* of an element */
} rect;

/* What an ISA and what ref.c write. */
typedef struct pair {
    rect isa, ref;
} pair;

/* Copies of x [rows, cols]; zeros if it is NULL. Fails the test without memory. */
pair pair_make(int64_t rows, int64_t cols, size_t size, const void *x);
/* Fails the test unless both hold the same bytes and their guards are as they were. */
void pair_assert_equal(const pair *p);
/* Fails the test if a guard byte has changed; frees. */
void pair_free(pair *p);

static inline float *rect_f32(const rect *r, int64_t row) {
    return (float *)r->at + row * r->stride;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* What a check works with. */
typedef struct checker {
    dpi_kernels isa, ref;
    const dpi_kernels *twin; /* products that have the bits of isa's; NULL: none */
    uint64_t seed;
} checker;

/* A kernel whose first argument is what it writes, into both of a pair. */
#define BOTH(c, pair, kernel, ...)                                                                 \
    ((c)->isa.kernel((pair).isa.at, __VA_ARGS__), (c)->ref.kernel((pair).ref.at, __VA_ARGS__))

/* Sizes of vectors, odd on purpose. */
enum { N_LENGTHS = 13 };
extern const int32_t lengths[N_LENGTHS];

/* Normal values; the caller frees them. */
float *randoms(checker *c, int64_t n, double scale);
/* Zeros; the caller frees them. */
void *zeros(int64_t n, size_t size);
/* |a - b| <= tolerance * scale, elementwise; scale is what the errors are relative to. */
void assert_close(const float *a, const float *b, int64_t n, double scale, double tolerance);

/* ---- Timings --------------------------------------------------------------------------------- */

enum {
    TIMED_N_IN = 2048, /* columns of the matrices, elements of the vectors */
    TIMED_MAX_ROWS = 64,
    TIMED_HEADS = 8, /* query heads that share one KV head */
    TIMED_HEAD_DIM = 64,
};

/* What one thread times calls on. */
typedef struct timed {
    const dpi_kernels *k;
    int32_t rows;        /* activations of a product; 1 otherwise */
    int32_t n_out;       /* outputs of a product */
    float *x, *y;        /* [TIMED_MAX_ROWS, TIMED_N_IN], [TIMED_MAX_ROWS, n_out], at least as x */
    uint16_t *f16;       /* [TIMED_MAX_ROWS, TIMED_N_IN] */
    dpi_q8 q8;           /* x in 8 bits */
    int32_t form;        /* of q8 */
    int64_t *sum, *null; /* [TIMED_N_IN] of the sampler */
    dpi_u128 *weight;    /* [TIMED_N_IN] */
    uint64_t (*tables)[256]; /* [3] */
    unsigned char *weights;  /* [n_out, TIMED_N_IN] of the kernel's type */
} timed;

/* ---- Kernels --------------------------------------------------------------------------------- */

typedef struct family_kernel {
    const char *name;                                         /* as in kernels.def */
    void (*check)(const struct family_kernel *f, checker *c); /* fails the test */
    void (*call)(const struct family_kernel *f, const timed *t);
    uint32_t type; /* of a product: the GGML type of its weights */
    bool is_product;
    double ops, bytes; /* of one call that is no product: operations; bytes read and written */
} family_kernel;

#define UNUSED_FAMILY const family_kernel *f __attribute__((unused))
/* CHECK(kernel) { ... } with the checker c; then KERNEL_OF(kernel, operations, bytes, arguments of
 * one call with the timed t) describes a kernel that is no product. */
#define CHECK(kernel) static void check_##kernel(UNUSED_FAMILY, checker *c)
#define KERNEL_OF(kernel, ops_, bytes_, ...)                                                       \
    static void call_##kernel(UNUSED_FAMILY, const timed *t) { t->k->kernel(__VA_ARGS__); }        \
    const family_kernel family_##kernel = {#kernel, check_##kernel, call_##kernel, 0,              \
                                           false,   ops_,           bytes_};

/* A kernel of kernels.def without a description does not link. */
#define KERNEL(name, parameters) extern const family_kernel family_##name;
#include "kernels/kernels.def"
#undef KERNEL

/* In the order of kernels.def; NULL beyond the last. */
const family_kernel *family_at(int32_t index);

#endif
