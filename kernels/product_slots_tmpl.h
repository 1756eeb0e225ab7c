/* product_slots.h - one function for each type of packed weights, for the dispatch table. Included
 * where NAME(kernel), the function's name in profiles, is defined and after
 *   matmul(type, y, y_stride, x, n_rows, w, n_in, n_out)              8-bit activations
 *   matmul_h(type, y, y_stride, x, x_stride, n_rows, w, n_in, n_out)  f32 ones, weights of 16 bits
 * to which `type` is a constant; gives init_products(). Not a header to include elsewhere. */

#define SLOT(name, type)                                                                           \
    static void NAME(matmul_##name)(float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,   \
                                    const void *w, int64_t n_in, int32_t n_out) {                  \
        matmul(type, y, y_stride, x, n_rows, w, n_in, n_out);                                      \
    }
DPI_MATMUL_Q_TYPES(SLOT)
#undef SLOT

#define SLOT(name, type)                                                                           \
    static void NAME(matmul_##name)(float *y, int64_t y_stride, const float *x, int64_t x_stride,  \
                                    int32_t n_rows, const void *w, int64_t n_in, int32_t n_out) {  \
        matmul_h(type, y, y_stride, x, x_stride, n_rows, w, n_in, n_out);                          \
    }
DPI_MATMUL_H_TYPES(SLOT)
#undef SLOT

static void init_products(dpi_kernels *k) {
#define SLOT(name, type) k->matmul_##name = NAME(matmul_##name);
    DPI_MATMUL_Q_TYPES(SLOT)
    DPI_MATMUL_H_TYPES(SLOT)
#undef SLOT
}
