/* dotprod_q.c - products with packed weights by the dot product instruction of Armv8.2. */
#define DOTPROD 1
#define HAS_PAIRS 0
#define NAME(kernel) kernel##_dotprod
#include "kernels/arm/neon_products_tmpl.h"

void dpi_kernels_init_dotprod(dpi_kernels *k) {
    k->probe_int8 = probe_int8_dotprod;
    init_products(k);
}
