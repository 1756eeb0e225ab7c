/* i8mm_q.c - products with packed weights by the products of matrices of Armv8.6. */
#define DOTPROD 1
#define HAS_PAIRS 1
#define NAME(kernel) kernel##_i8mm
#include "kernels/arm/neon_products_tmpl.h"

void dpi_kernels_init_i8mm(dpi_kernels *k) {
    k->probe_int8 = probe_int8_i8mm;
    init_products(k);
}
