/* cpu.h - what this processor can do, and what it does better. Internal.
 *
 * This is the only place that knows a processor by its name. Kernels are chosen by features and
 * read tuning values. Neither changes a bit of a result.
 *
 * A model holds the values that its sessions use: they are decided when it is opened, once in a
 * process, and do not change afterwards. The library keeps no global state that could hold them. */
#ifndef DPI_CPU_H
#define DPI_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "dpinfer/status.h"

/* How far ahead of the weights that are read they are prefetched, in bytes: into L1, and before
 * that into L2. 0: not, or it costs only the instruction, since they are there already. */
typedef struct dpi_prefetch {
    int32_t l1, l2;
} dpi_prefetch;

/* The two ways in which a product reads its weights, as indices. */
enum { DPI_PANELS, DPI_STREAM }; /* a stream: each line once, in order, one soon after the other */
enum { DPI_SEVERAL, DPI_SINGLE }; /* sequences */

/* Rows of activations: up to 24, more. */
enum { DPI_ROWS_FEW, DPI_ROWS_MANY, DPI_ROWS_FEW_MAX = 24 };

typedef struct dpi_tuning {
    /* [type has mins][DPI_ROWS_FEW or DPI_ROWS_MANY] products with fewer multiplications (q8.h)
     * take less time. */
    bool winograd[2][2];
    dpi_prefetch quantized[2][2]; /* [DPI_PANELS or DPI_STREAM][DPI_SEVERAL or DPI_SINGLE] */
    /* [DPI_SEVERAL or DPI_SINGLE] weights of 16 bits: bytes ahead, into L2. 0: not, of a single
     * sequence. */
    int32_t f16_l2[2];
} dpi_tuning;

typedef struct dpi_cpu {
    /* What kernel sets need (dispatch.c); avxvnni: vpdpbusd on vectors of AVX2. */
    bool has_avx2, has_avxvnni, has_avx512, has_dotprod, has_i8mm;
    dpi_tuning tuning;
} dpi_cpu;

/* Features and tuning values by the processor's name. tuning.winograd is all false. */
void dpi_cpu_detect(dpi_cpu *cpu);

/* dpi_cpu_detect, and tuning.winograd: it times both kinds of products, 1 ms. Errors: MEMORY. */
dpi_status dpi_cpu_measure(dpi_cpu *cpu, dpi_error *err);

#endif
