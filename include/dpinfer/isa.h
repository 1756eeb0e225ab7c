/* isa.h - instruction sets of the processor. */
#ifndef DPINFER_ISA_H
#define DPINFER_ISA_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dpi_isa {
    DPI_ISA_AUTO = 0, /* the best that the processor has */
    DPI_ISA_REF = 1,  /* readable scalar C */
    DPI_ISA_AVX2 = 2, /* AVX2, FMA, F16C */
    DPI_ISA_AVX512 = 3, /* AVX-512 F, BW, DQ, VL, VNNI */
    DPI_ISA_NEON = 4,   /* what every AArch64 has */
    DPI_ISA_DOTPROD = 5, /* and the dot products of Armv8.2 */
    DPI_ISA_I8MM = 6     /* and the products of matrices of Armv8.6 */
} dpi_isa;

/* "ref", "avx2", "avx512", "neon", "dotprod", "i8mm", "auto" to a dpi_isa, and back (static string,
 * NULL if unknown). */
DPI_API DPI_MUST_CHECK dpi_status dpi_isa_parse(const char *name, int32_t *isa, dpi_error *err);
DPI_API const char *dpi_isa_name(int32_t isa);
/* Those that this processor and this build have, from the plainest to the best: the one after
 * `isa`, the first one after DPI_ISA_AUTO; DPI_ISA_AUTO after the last one. */
DPI_API int32_t dpi_isa_next(int32_t isa);
/* Whether they have this one. AUTO: 1. */
DPI_API int32_t dpi_isa_runs(int32_t isa);
/* The best ISA that this processor runs. Never DPI_ISA_AUTO. */
DPI_API int32_t dpi_isa_best(void);

/* What a program sets OPENBLAS_CORETYPE to, before the first product of training or of the ISA ref,
 * if its user has not: OpenBLAS's kernels for the best ISA of this processor. NULL: leave it as it
 * is. By itself OpenBLAS goes by a list of processors that ends with those of its own year. On
 * later ones it computes in SSE3, at an eighth of the speed, and machines of one ISA get different
 * bits. */
DPI_API const char *dpi_isa_openblas(void);

#ifdef __cplusplus
}
#endif
#endif
