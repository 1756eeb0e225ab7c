#include "kernels/kernels.h"

#include <string.h>

#include "base/format.h"
#include "base/status.h"

/* The kernel sets, from the plainest to the best of each kind of processor. One without a name is
 * another way to the bits of the set before it. */
typedef struct kernel_set {
    int32_t isa;
    const char *name;
    const char *openblas; /* OPENBLAS_CORETYPE; NULL: as OpenBLAS has it */
    bool (*runs)(const dpi_cpu *cpu);
    void (*init)(dpi_kernels *kernels); /* what it does better than the sets before; NULL: it is not
                                           in this build */
} kernel_set;

static bool always(const dpi_cpu *cpu) {
    (void)cpu;
    return true;
}
#define RUNS(feature) \
    static bool runs_##feature(const dpi_cpu *cpu) { return cpu->has_##feature; }
RUNS(avx2)
RUNS(avxvnni)
RUNS(avx512)
RUNS(dotprod)
RUNS(i8mm)
#undef RUNS

#ifdef __x86_64__
#define X86(init) init
#else
#define X86(init) NULL
#endif
#ifdef __aarch64__
#define ARM64(init) init
#else
#define ARM64(init) NULL
#endif
static const kernel_set sets[] = {
    {DPI_ISA_REF, "ref", NULL, always, dpi_kernels_init_ref},
    {DPI_ISA_AVX2, "avx2", "Haswell", runs_avx2, X86(dpi_kernels_init_avx2)},
    {DPI_ISA_AVX2, NULL, "Haswell", runs_avxvnni, X86(dpi_kernels_init_avxvnni_q)},
    {DPI_ISA_AVX512, "avx512", "SkylakeX", runs_avx512, X86(dpi_kernels_init_avx512)},
    {DPI_ISA_NEON, "neon", NULL, always, ARM64(dpi_kernels_init_neon)},
    {DPI_ISA_DOTPROD, "dotprod", NULL, runs_dotprod, ARM64(dpi_kernels_init_dotprod)},
    {DPI_ISA_I8MM, "i8mm", NULL, runs_i8mm, ARM64(dpi_kernels_init_i8mm)},
};

enum { N_SETS = sizeof sets / sizeof sets[0] };

static bool runs(const kernel_set *set, const dpi_cpu *cpu) { return set->init && set->runs(cpu); }

const char *dpi_isa_name(int32_t isa) {
    for (int i = 0; i < N_SETS; i++)
        if (sets[i].isa == isa && sets[i].name)
            return sets[i].name;
    return isa == DPI_ISA_AUTO ? "auto" : NULL;
}

dpi_status dpi_isa_parse(const char *name, int32_t *isa, dpi_error *err) {
    char names[80] = "";
    for (int i = -1; i < N_SETS; i++) {
        const int32_t found = i < 0 ? DPI_ISA_AUTO : sets[i].isa;
        if (i >= 0 && !sets[i].name)
            continue;
        if (name && strcmp(dpi_isa_name(found), name) == 0) {
            *isa = found;
            return DPI_STATUS_OK;
        }
        const size_t n = strlen(names);
        dpi_format(names + n, sizeof names - n, "%s%s",
                   i < 0               ? ""
                   : i == N_SETS - 1 ? " or "
                                       : ", ", dpi_isa_name(found));
    }
    return dpi_fail(err, DPI_STATUS_ARG, "instruction set '%.32s', must be %s", name ? name : "",
                    names);
}

int32_t dpi_isa_next(int32_t isa) {
    dpi_cpu cpu;
    bool after = isa == DPI_ISA_AUTO;
    dpi_cpu_detect(&cpu);
    for (int i = 0; i < N_SETS; i++) {
        if (after && sets[i].isa != isa && sets[i].name && runs(&sets[i], &cpu))
            return sets[i].isa;
        after = after || sets[i].isa == isa;
    }
    return DPI_ISA_AUTO;
}

int32_t dpi_isa_runs(int32_t isa) {
    int32_t at = DPI_ISA_AUTO;
    while (at != isa && (at = dpi_isa_next(at)) != DPI_ISA_AUTO) {
    }
    return at == isa;
}

int32_t dpi_isa_best(void) {
    int32_t best = DPI_ISA_REF;
    for (int32_t isa = best; isa != DPI_ISA_AUTO; isa = dpi_isa_next(isa))
        best = isa;
    return best;
}

const char *dpi_isa_openblas(void) {
    const int32_t best = dpi_isa_best();
    int i = 0;
    while (sets[i].isa != best)
        i++;
    return sets[i].openblas;
}

dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err) {
    dpi_cpu cpu;
    if (!dpi_isa_name(isa))
        return dpi_fail(err, DPI_STATUS_ARG, "isa is %d, must be a dpi_isa (0..%d)", (int)isa,
                        DPI_ISA_I8MM);
    if (!dpi_isa_runs(isa))
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "instruction set %s: this processor has %s at best", dpi_isa_name(isa),
                        dpi_isa_name(dpi_isa_best()));
    if (isa == DPI_ISA_AUTO)
        isa = dpi_isa_best();
    dpi_cpu_detect(&cpu);
    int last = N_SETS - 1;
    while (sets[last].isa != isa)
        last--;
    for (int i = 0; i <= last; i++)
        if (runs(&sets[i], &cpu))
            sets[i].init(kernels);
    kernels->isa = isa;
    kernels->tuning = cpu.tuning;
    return DPI_STATUS_OK;
}

bool dpi_kernels_winograd(const dpi_kernels *kernels, const dpi_type *type, int32_t n_rows) {
    int32_t rows = n_rows > DPI_ROWS_FEW_MAX ? DPI_ROWS_MANY : DPI_ROWS_FEW;
    return kernels->has_winograd && type->is_narrow && n_rows >= DPI_WINOGRAD_ROWS &&
           kernels->tuning.winograd[type->has_min][rows];
}

/* SLOT_F32, SLOT_H and SLOT_Q say what a type of that product returns. */
#define SLOT(name, id) \
    case id:           \
        return kernels->matmul_##name;
#define NO_SLOT(name, id)
#define WEIGHT(NAME, name, id, block, bytes, quantize, product, ...) SLOT_##product(name, id)

dpi_matmul_q_fn *dpi_kernels_matmul_q(const dpi_kernels *kernels, uint32_t type) {
    switch (type) {
#define SLOT_F32 NO_SLOT
#define SLOT_H NO_SLOT
#define SLOT_Q SLOT
#include "kernels/weight_types.def"
#undef SLOT_H
#undef SLOT_Q
    default:
        return NULL;
    }
}

dpi_matmul_h_fn *dpi_kernels_matmul_h(const dpi_kernels *kernels, uint32_t type) {
    switch (type) {
#define SLOT_H SLOT
#define SLOT_Q NO_SLOT
#include "kernels/weight_types.def"
    default:
        return NULL;
    }
}
