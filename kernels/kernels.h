/* kernels.h - the dispatch table of the arithmetic kernels. Internal.
 *
 * kernels/ knows arrays, not models. ref.c fills the table with readable scalar C; each ISA file
 * overrides the slots that it improves. The contracts are in kernels.def. */
#ifndef DPI_KERNELS_H
#define DPI_KERNELS_H

#include <stdint.h>

#include "dpinfer.h"

#ifdef __FAST_MATH__
#error "dpinfer's guarantees need IEEE arithmetic: build without -ffast-math"
#endif

enum {
    DPI_KV_BLOCK = 64, /* positions per block of a KV cache, and per softmax block */
    DPI_Q8_BLOCK = 32, /* activations per scale */
    DPI_Q8_LEVELS = 4, /* scales tried: max|x| / 127 .. max|x| / 124 */
    DPI_TILE_ROWS = 4, /* rows that a matmul tile holds in registers */
};

typedef struct dpi_kernels {
    int32_t isa; /* a dpi_isa other than AUTO */
#define KERNEL(name, parameters) void(*name) parameters;
#include "kernels.def"
#undef KERNEL
} dpi_kernels;

/* Fills the table for `isa` (AUTO: the best). Errors: ARG (not a dpi_isa), UNSUPPORTED (the
 * processor or the build lacks it). */
dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err);

/* One per ISA file: overrides slots of a filled table. */
void dpi_kernels_init_ref(dpi_kernels *kernels);
void dpi_kernels_init_avx2(dpi_kernels *kernels);
void dpi_kernels_init_avx512(dpi_kernels *kernels);

#endif
