/* The products of avxvnni_q.c with the same instruction in its AVX-512 encoding, so that they run
 * on processors that have only that. */
#define VNNI 1
#define NAME(kernel) kernel##_evex
#include "kernels/x86/avx2_products_tmpl.h"

void init_vnni_evex(dpi_kernels *k);
void init_vnni_evex(dpi_kernels *k) { init_products(k); }
