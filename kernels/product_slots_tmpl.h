/* product_slots_tmpl.h - one function for each type of packed weights, for the dispatch table.
 * Included where NAME(kernel), the function's name in profiles, is defined, and after
 *   matmul_q(type, y, y_stride, x, n_rows, w, n_in, n_out, tuning)     8-bit activations
 *   matmul_h(type, y, y_stride, x, x_stride, n_rows, w, n_in, n_out, tuning)  f32 ones
 * to which `type` is a constant; gives init_products(). Not a header to include elsewhere.
 *
 * Functions begin at cache lines: where a loop of a product begins in its line makes up to 30 % of
 * the time of a small one, and must not depend on what stands before it in the file. */

#define ALIGNED __attribute__((aligned(64)))

#ifndef HAS_PRODUCT /* where types are in several files: whether those of this block are here */
#define HAS_PRODUCT(block) 1
#endif

#define SLOT_F32(name, type, block)
#define SLOT_Q(name, type, block)                                                                  \
    ALIGNED static void NAME(matmul_##name)(float *y, int64_t y_stride, const dpi_q8 *x,           \
                                            int32_t n_rows, const void *w, int64_t n_in,           \
                                            int32_t n_out, const dpi_tuning *tuning) {             \
        if (HAS_PRODUCT(block))                                                                    \
            matmul_q(type, y, y_stride, x, n_rows, w, n_in, n_out, tuning);                        \
    }
#define SLOT_H(name, type, block)                                                                  \
    ALIGNED static void NAME(matmul_##name)(float *y, int64_t y_stride, const float *x,            \
                                            int64_t x_stride, int32_t n_rows, const void *w,       \
                                            int64_t n_in, int32_t n_out,                           \
                                            const dpi_tuning *tuning) {                            \
        if (HAS_PRODUCT(block))                                                                    \
            matmul_h(type, y, y_stride, x, x_stride, n_rows, w, n_in, n_out, tuning);              \
    }
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) SLOT_##product(name, id, block)
#include "kernels/weight_types.def"
#undef WEIGHT
#undef SLOT_Q
#undef SLOT_H

static void init_products(dpi_kernels *k) {
#define SLOT_Q(name, block)                                                                        \
    if (HAS_PRODUCT(block))                                                                        \
        k->matmul_##name = NAME(matmul_##name);
#define SLOT_H(name, block) SLOT_Q(name, block)
#undef SLOT_F32
#define SLOT_F32(name, block)
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) SLOT_##product(name, block)
#include "kernels/weight_types.def"
#undef WEIGHT
#undef SLOT_F32
#undef SLOT_Q
#undef SLOT_H
}
