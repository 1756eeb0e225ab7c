/* avxvnni_q.c - the products of avx2_q.c for processors without AVX-512 that have vpdpbusd. */
#define VNNI 1
#define NAME(kernel) kernel##_avxvnni
#include "kernels/x86/avx2_products_tmpl.h"

void dpi_kernels_init_avxvnni_q(dpi_kernels *k) { init_products(k); }
