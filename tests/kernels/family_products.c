/* family_products.c - products of activations with weights of every type. */
#include <math.h>

#include "kernels/pack.h"
#include "tests/kernels/family.h"
#include "tests/kernels/family_q8.h"

/* ---- f32 weights ----------------------------------------------------------------------------- */

CHECK(matmul_f32) {
    static const int32_t rows[] = {1, 2, 3, 4, 5, 9, 33, 64};
    for (int i = 0; i < 8 * N_LENGTHS; i++) {
        const int32_t n_in = lengths[i / 8], n_rows = rows[i % 8];
        const int32_t n_out = 1 + random_below(&c->seed, 23);
        float *x = randoms(c, (int64_t)n_rows * n_in, 1);
        float *w = randoms(c, (int64_t)n_out * n_in, 1);
        pair y = pair_make(n_rows, n_out, sizeof *x, NULL);
        BOTH(c, y, matmul_f32, y.isa.stride, x, n_in, n_rows, w, n_in, n_out);
        for (int32_t r = 0; r < n_rows; r++)
            assert_close(rect_f32(&y.isa, r), rect_f32(&y.ref, r), n_out, sqrt(n_in) * 6,
                         EPS * (n_in / 16.0 + 8));
        for (int32_t r = 0; r < n_rows; r++) /* alone, a row has the same bits */
            c->isa.matmul_f32(rect_f32(&y.ref, r), y.ref.stride, x + (int64_t)r * n_in, n_in, 1, w,
                              n_in, n_out);
        pair_assert_equal(&y);
        free(x), free(w), pair_free(&y);
    }
}

static void call_matmul_f32(UNUSED_FAMILY, const timed *t) {
    t->k->matmul_f32(t->y, t->n_out, t->x, TIMED_N_IN, t->rows, (const float *)(void *)t->weights,
                     TIMED_N_IN, t->n_out);
}

/* ---- Packed weights -------------------------------------------------------------------------- */

/* n_out rows of n_blocks blocks as panels; the caller frees them. */
static unsigned char *pack_rows(const dpi_type *type, const unsigned char *rows, int32_t n_out,
                                int64_t n_blocks) {
    int64_t row_bytes = n_blocks * type->block_bytes;
    int32_t n_panels = (n_out + DPI_PANEL_ROWS - 1) / DPI_PANEL_ROWS;
    unsigned char *packed = zeros(n_panels * DPI_PANEL_ROWS * row_bytes, 1);
    for (int32_t i = 0; i < n_panels; i++) {
        int32_t left = n_out - i * DPI_PANEL_ROWS;
        dpi_panel_pack(type, rows + i * DPI_PANEL_ROWS * row_bytes,
                       left < DPI_PANEL_ROWS ? left : DPI_PANEL_ROWS, n_blocks,
                       packed + i * DPI_PANEL_ROWS * row_bytes);
    }
    return packed;
}

/* Every row can be read back. */
static void check_panels(const dpi_type *type, const unsigned char *rows,
                         const unsigned char *packed, int32_t n_out, int64_t n_blocks) {
    int64_t row_bytes = n_blocks * type->block_bytes;
    for (int32_t o = 0; o < n_out; o++)
        for (int64_t b = 0; b < n_blocks; b++) {
            unsigned char bytes[256];
            dpi_panel_unpack(type, packed + o / DPI_PANEL_ROWS * DPI_PANEL_ROWS * row_bytes,
                             o % DPI_PANEL_ROWS, b, 1, n_blocks, bytes);
            assert_memory_equal(bytes, rows + o * row_bytes + b * type->block_bytes,
                                (size_t)type->block_bytes);
        }
}

/* ---- 8-bit activations ----------------------------------------------------------------------- */

/* Random bytes as blocks of a type, but for the halves among them: scales of a usual size. */
static void random_blocks(checker *c, uint32_t id, unsigned char *w, int64_t n_blocks) {
    static const struct {
        uint32_t id;
        int32_t halves[2]; /* offsets in a block; -1: none */
    } types[] = {
        {DPI_TYPE_Q8_0, {0, -1}},   {DPI_TYPE_Q4_0, {0, -1}},   {DPI_TYPE_Q4_1, {0, 2}},
        {DPI_TYPE_Q5_0, {0, -1}},   {DPI_TYPE_Q5_1, {0, 2}},    {DPI_TYPE_Q2_K, {80, 82}},
        {DPI_TYPE_Q3_K, {108, -1}}, {DPI_TYPE_Q4_K, {0, 2}},    {DPI_TYPE_Q5_K, {0, 2}},
        {DPI_TYPE_Q6_K, {208, -1}}, {DPI_TYPE_IQ4_NL, {0, -1}}, {DPI_TYPE_IQ4_XS, {0, -1}},
    };
    size_t t = 0;
    while (types[t].id != id)
        t++;
    int32_t bytes = dpi_type_find(id)->block_bytes;
    for (int64_t i = 0; i < n_blocks * bytes; i++)
        w[i] = (unsigned char)random_u64(&c->seed);
    for (int64_t b = 0; b < n_blocks; b++)
        for (int h = 0; h < 2; h++)
            if (types[t].halves[h] >= 0) {
                uint16_t half = dpi_f32_to_f16((float)(0.02 * random_normal(&c->seed)));
                memcpy(w + b * bytes + types[t].halves[h], &half, 2);
            }
}

/* A product of n_rows rows with n_out rows of weights. */
typedef struct q_product {
    const dpi_type *type;
    int32_t n_rows, n_out, form;
    int64_t n_in;
    float *x, *w; /* [n_rows, n_in], [n_out, n_in] */
    unsigned char *packed;
    dpi_q8 q;
    pair y;
} q_product;

static void multiply(const dpi_kernels *k, const q_product *p, const rect *y, const dpi_q8 *q) {
    dpi_kernels_matmul_q(k, p->type->id)(y->at, y->stride, q, p->n_rows, p->packed, p->n_in,
                                         p->n_out, &k->tuning);
}

/* The ISA's, in y, without Winograd products, beside ref.c's, and row by row. */
static void check_against_ref(checker *c, const q_product *p) {
    const pair *y = &p->y;
    dpi_q8 plain = p->q;
    plain.winograd = NULL;
    multiply(&c->isa, p, &y->ref, &plain);
    pair_assert_equal(y);
    multiply(&c->ref, p, &y->ref, &p->q);
    for (int32_t o = 0; o < p->n_out; o++) {
        double power = 0; /* errors are relative to the terms, which may cancel */
        for (int64_t k = 0; k < p->n_in; k++)
            power += fabs((double)p->w[o * p->n_in + k]);
        for (int32_t r = 0; r < p->n_rows; r++)
            assert_close(rect_f32(&y->isa, r) + o, rect_f32(&y->ref, r) + o, 1, 128 * power / 32,
                         EPS * ((double)p->n_in / 32 + 8));
    }
    q_product alone = *p;
    alone.n_rows = 1;
    for (int32_t r = 0; r < p->n_rows; r++) { /* alone, a row has the same bits */
        dpi_q8 one = q8_alloc(1, p->n_in);
        rect to = y->ref;
        to.at = rect_f32(&y->ref, r);
        q8_fill(&c->isa, &one, p->x + r * p->n_in, 1, p->n_in, p->form);
        multiply(&c->isa, &alone, &to, &one);
        q8_free(&one);
    }
    pair_assert_equal(y);
}

static void check_q_of(checker *c, const dpi_type *type, int32_t n_rows, int32_t n_blocks,
                       int32_t n_out) {
    q_product p = {.type = type, .n_rows = n_rows, .n_out = n_out};
    p.form = type->is_narrow ? DPI_Q8_BOTH : DPI_Q8_PLAIN;
    p.n_in = (int64_t)n_blocks * type->block;
    unsigned char *rows = zeros((int64_t)n_out * n_blocks * type->block_bytes, 1);
    p.w = zeros(n_out * p.n_in, sizeof *p.w), p.x = randoms(c, n_rows * p.n_in, 1);
    random_blocks(c, type->id, rows, (int64_t)n_out * n_blocks);
    type->dequantize(rows, p.w, n_out * p.n_in);
    p.packed = pack_rows(type, rows, n_out, n_blocks);
    check_panels(type, rows, p.packed, n_out, n_blocks);
    p.q = q8_alloc(n_rows, p.n_in);
    q8_fill(&c->isa, &p.q, p.x, n_rows, p.n_in, p.form);
    p.y = pair_make(n_rows, n_out, sizeof *p.w, NULL);
    multiply(&c->isa, &p, &p.y.isa, &p.q);
    if (c->twin) {
        multiply(c->twin, &p, &p.y.ref, &p.q);
        pair_assert_equal(&p.y);
    } else {
        check_against_ref(c, &p);
    }
    free(rows), free(p.packed), free(p.w), free(p.x), q8_free(&p.q), pair_free(&p.y);
}

static void check_q(const family_kernel *f, checker *c) {
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 17, 32, 33, 70};
    static const int32_t blocks[] = {1, 2, 3, 4, 9, 12}; /* several rounds of the loops */
    const dpi_type *type = dpi_type_find(f->type);
    const size_t n_blocks = type->block > 32 ? 4 : 6; /* which are over sub-blocks of 32 */
    for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++)
        for (size_t k = 0; k < n_blocks; k++)
            check_q_of(c, type, rows[j], blocks[k], 1 + random_below(&c->seed, 40));
}

static void call_q(const family_kernel *f, const timed *t) {
    dpi_q8 x = dpi_q8_in(&t->q8, t->form);
    dpi_kernels_matmul_q(t->k, f->type)(t->y, t->n_out, &x, t->rows, t->weights, TIMED_N_IN,
                                        t->n_out, &t->k->tuning);
}

/* ---- f32 activations, weights of 16 bits ----------------------------------------------------- */

static void check_h_of(checker *c, const dpi_type *type, int32_t n_rows, int64_t n_in,
                       int32_t n_out) {
    dpi_matmul_h_fn *fast = dpi_kernels_matmul_h(&c->isa, type->id);
    dpi_matmul_h_fn *slow = dpi_kernels_matmul_h(&c->ref, type->id);
    const dpi_tuning *tuning = &c->isa.tuning;
    float *w = randoms(c, n_out * n_in, 1), *x = randoms(c, n_rows * n_in, 1);
    float *row = zeros(n_in, sizeof *row);
    uint16_t *rows = zeros(n_out * n_in, sizeof *rows);
    for (int64_t i = 0; i < n_out * n_in; i++) {
        uint32_t bits;
        memcpy(&bits, &w[i], sizeof bits);
        rows[i] = type->id == DPI_TYPE_F16 ? dpi_f32_to_f16(w[i]) : (uint16_t)(bits >> 16);
    }
    unsigned char *packed = pack_rows(type, (unsigned char *)rows, n_out, n_in);
    pair y = pair_make(n_rows, n_out, sizeof *w, NULL);
    fast(y.isa.at, y.isa.stride, x, n_in, n_rows, packed, n_in, n_out, tuning);
    slow(y.ref.at, y.ref.stride, x, n_in, n_rows, packed, n_in, n_out, tuning);
    for (int32_t o = 0; o < n_out; o++) {
        type->dequantize(rows + o * n_in, row, n_in);
        for (int32_t r = 0; r < n_rows; r++) {
            double sum = 0, power = 0; /* errors are relative to the terms, which may cancel */
            for (int64_t k = 0; k < n_in; k++) {
                sum += (double)row[k] * (double)x[r * n_in + k];
                power += fabs((double)row[k] * (double)x[r * n_in + k]);
            }
            float exact = (float)sum;
            assert_close(rect_f32(&y.ref, r) + o, &exact, 1, power, EPS);
            assert_close(rect_f32(&y.isa, r) + o, &exact, 1, power, EPS * (double)n_in);
        }
    }
    for (int32_t r = 0; r < n_rows; r++) /* alone, a row has the same bits */
        fast(rect_f32(&y.ref, r), y.ref.stride, x + r * n_in, n_in, 1, packed, n_in, n_out, tuning);
    pair_assert_equal(&y);
    free(rows), free(packed), free(w), free(x), free(row), pair_free(&y);
}

static void check_h(const family_kernel *f, checker *c) {
    static const int32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17, 33};
    for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
        int32_t n_out = 1 + random_below(&c->seed, 40);
        check_h_of(c, dpi_type_find(f->type), rows[j], 1 + random_below(&c->seed, 100), n_out);
    }
}

static void call_h(const family_kernel *f, const timed *t) {
    dpi_kernels_matmul_h(t->k, f->type)(t->y, t->n_out, t->x, TIMED_N_IN, t->rows, t->weights,
                                        TIMED_N_IN, t->n_out, &t->k->tuning);
}

/* ---- A kernel for each type ------------------------------------------------------------------ */

#define PRODUCT(name, type, check, call)                                                           \
    const family_kernel family_matmul_##name = {"matmul_" #name, check, call, type, true, 0, 0};
#define PRODUCT_F32(name, type) PRODUCT(name, type, check_matmul_f32, call_matmul_f32)
#define PRODUCT_H(name, type) PRODUCT(name, type, check_h, call_h)
#define PRODUCT_Q(name, type) PRODUCT(name, type, check_q, call_q)
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) PRODUCT_##product(name, id)
#include "kernels/weight_types.def"
#undef WEIGHT
