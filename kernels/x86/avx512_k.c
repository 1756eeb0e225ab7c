/* avx512_k.c - products with packed weights in blocks of 256, AVX-512 VNNI. */
#define HAS_PRODUCT(block) ((block) == 256)
#include "kernels/x86/avx512_products_tmpl.h"

void dpi_kernels_init_avx512_k(dpi_kernels *k) { init_products(k); }
