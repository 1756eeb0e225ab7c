#include "tests/kernels/family.h"

#include <math.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, PADDING = 3 };

/* ---- Rectangles ------------------------------------------------------------------------------ */

static size_t n_bytes(const rect *r) { return 2 * GUARD + (size_t)(r->rows * r->stride) * r->size; }

/* Whether byte i of the memory is a guard byte. */
static bool is_guard(const rect *r, size_t i) {
    size_t row = (size_t)r->stride * r->size, used = (size_t)r->cols * r->size;
    return i < GUARD || i >= n_bytes(r) - GUARD || (i - GUARD) % row >= used;
}

static rect rect_make(int64_t rows, int64_t cols, size_t size, const unsigned char *x) {
    rect r = {.rows = rows, .cols = cols, .stride = cols + PADDING, .size = size};
    r.memory = malloc(n_bytes(&r));
    assert_non_null(r.memory);
    for (size_t i = 0; i < n_bytes(&r); i++)
        r.memory[i] = is_guard(&r, i) ? GUARD_BYTE : x ? *x++ : 0;
    r.at = r.memory + GUARD;
    return r;
}

static void assert_guards(const rect *r) {
    for (size_t i = 0; i < n_bytes(r); i++)
        if (is_guard(r, i) && r->memory[i] != GUARD_BYTE)
            fail_msg("byte %lld of [%lld, %lld] was written, rows are %lld elements of %zu bytes "
                     "apart",
                     (long long)i - GUARD, (long long)r->rows, (long long)r->cols,
                     (long long)r->stride, r->size);
}

pair pair_make(int64_t rows, int64_t cols, size_t size, const void *x) {
    return (pair){rect_make(rows, cols, size, x), rect_make(rows, cols, size, x)};
}

void pair_assert_equal(const pair *p) {
    assert_guards(&p->isa);
    assert_guards(&p->ref);
    assert_memory_equal(p->isa.memory, p->ref.memory, n_bytes(&p->isa));
}

void pair_free(pair *p) {
    assert_guards(&p->isa);
    assert_guards(&p->ref);
    free(p->isa.memory);
    free(p->ref.memory);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

const int32_t lengths[N_LENGTHS] = {1, 2, 7, 8, 15, 16, 17, 31, 64, 100, 172, 515, 2048};

float *randoms(checker *c, int64_t n, double scale) {
    float *x = zeros(n, sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * random_normal(&c->seed));
    return x;
}

void *zeros(int64_t n, size_t size) {
    void *p = calloc((size_t)n + 1, size);
    assert_non_null(p);
    return p;
}

void assert_close(const float *a, const float *b, int64_t n, double scale, double tolerance) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= tolerance * scale))
            fail_msg("element %lld of %lld: %.9g against %.9g of ref (allowed %.3g)", (long long)i,
                     (long long)n, (double)a[i], (double)b[i], tolerance * scale);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

const family_kernel *family_at(int32_t index) {
    static const family_kernel *const all[] = {
#define KERNEL(name, parameters) &family_##name,
#include "kernels/kernels.def"
#undef KERNEL
    };
    return index < (int32_t)(sizeof all / sizeof *all) ? all[index] : NULL;
}
