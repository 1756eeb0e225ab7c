/* kernels.h - the dispatch table of the arithmetic kernels. Internal.
 *
 * kernels/ knows arrays, not models. ref/ref.c fills the table with readable scalar C; each ISA
 * file overrides the slots that it improves. The contracts are in kernels.def. */
#ifndef DPI_KERNELS_H
#define DPI_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dpinfer/isa.h"
#include "kernels/cpu.h"
#include "kernels/exact.h"
#include "kernels/q8.h"
#include "kernels/weight_types.h"

#ifdef __FAST_MATH__
#error "dpinfer's guarantees need IEEE arithmetic: build without -ffast-math"
#endif

enum {
    DPI_KV_BLOCK = 64, /* positions per block of a KV cache, and per softmax block */
    DPI_KV_PANEL = 16, /* positions whose K stand side by side */
    DPI_TILE_ROWS = 4, /* rows that an f32 matmul tile holds in registers */
    DPI_FLOOR_BITS = 40, /* no weight of the sampler is below 2^40 */
};

/* Where value i of position j stands in K (attend_f32 in kernels.def). */
static inline int64_t dpi_kv_k_at(int32_t j, int64_t i, int32_t head_dim) {
    return (int64_t)(j / DPI_KV_PANEL * DPI_KV_PANEL) * head_dim + i * DPI_KV_PANEL +
           j % DPI_KV_PANEL;
}

/* The cap of a gap of utilities before it is multiplied by a: no more than 69 bits count. */
static inline int64_t dpi_gap_max(uint64_t a) { return (int64_t)((UINT64_C(69) << 48) / a + 1); }

typedef struct dpi_kernels {
    int32_t isa; /* a dpi_isa other than AUTO */
    bool has_winograd; /* products may read Winograd blocks */
    dpi_tuning tuning; /* for the products; winograd: see dpi_kernels_winograd */
#define KERNEL(name, parameters) void(*name) parameters;
#include "kernels/kernels.def"
#undef KERNEL
    /* What the processor can do at best, for benchmarks: a read of n bytes (a multiple of 256), and
     * `steps` rounds of independent multiply-adds on registers, whose number of operations they
     * return. The results only keep the compiler from leaving the work out. NULL: unknown. */
    uint64_t (*probe_read)(const void *p, size_t n);
    double (*probe_int8)(int64_t steps, int32_t *result);
    double (*probe_f32)(int64_t steps, float *result);
} dpi_kernels;

/* Fills the table for `isa` (AUTO: the best), with tuning values as dpi_cpu_detect leaves them.
 * Errors: ARG (not a dpi_isa), UNSUPPORTED (the processor or the build lacks it). */
dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err);

/* Whether products of n_rows rows of activations with this type are to read Winograd blocks. */
bool dpi_kernels_winograd(const dpi_kernels *kernels, const dpi_type *type, int32_t n_rows);

/* One per ISA file: overrides slots of a filled table. */
void dpi_kernels_init_ref(dpi_kernels *kernels);
void dpi_kernels_init_avx2(dpi_kernels *kernels);
void dpi_kernels_init_avx512(dpi_kernels *kernels);
void dpi_kernels_init_ref_q(dpi_kernels *kernels);
void dpi_kernels_init_avx2_q(dpi_kernels *kernels);
void dpi_kernels_init_avxvnni_q(dpi_kernels *kernels);
void dpi_kernels_init_avx512_q(dpi_kernels *kernels);
void dpi_kernels_init_avx512_k(dpi_kernels *kernels);
void dpi_kernels_init_ref_sampler(dpi_kernels *kernels);
void dpi_kernels_init_avx2_sampler(dpi_kernels *kernels);
void dpi_kernels_init_avx512_sampler(dpi_kernels *kernels);
void dpi_kernels_init_neon(dpi_kernels *kernels);
void dpi_kernels_init_neon_q(dpi_kernels *kernels);
void dpi_kernels_init_neon_sampler(dpi_kernels *kernels);
void dpi_kernels_init_dotprod(dpi_kernels *kernels);
void dpi_kernels_init_i8mm(dpi_kernels *kernels);

typedef void dpi_matmul_q_fn(float *y, int64_t y_stride, const dpi_q8 *x, int32_t n_rows,
                             const void *w, int64_t n_in, int32_t n_out, const dpi_tuning *tuning);
typedef void dpi_matmul_h_fn(float *y, int64_t y_stride, const float *x, int64_t x_stride,
                             int32_t n_rows, const void *w, int64_t n_in, int32_t n_out,
                             const dpi_tuning *tuning);
/* The slot for packed weights of a GGML type; NULL if there is none. */
dpi_matmul_q_fn *dpi_kernels_matmul_q(const dpi_kernels *kernels, uint32_t type);
dpi_matmul_h_fn *dpi_kernels_matmul_h(const dpi_kernels *kernels, uint32_t type);

#endif
