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

/* The row of an instruction set, of two the last one; AUTO: of the best. -1: it does not run. */
static int row_of(int32_t isa, const dpi_cpu *cpu) {
    int row = -1;
    for (int i = 0; i < N_SETS; i++)
        if ((isa == DPI_ISA_AUTO || sets[i].isa == isa) && runs(&sets[i], cpu))
            row = i;
    return row;
}

int32_t dpi_isa_next(int32_t isa) {
    dpi_cpu cpu;
    dpi_cpu_detect(&cpu);
    int i = isa == DPI_ISA_AUTO ? 0 : row_of(isa, &cpu) + 1;
    while (i < N_SETS && !runs(&sets[i], &cpu))
        i++;
    return i < N_SETS ? sets[i].isa : DPI_ISA_AUTO;
}

int32_t dpi_isa_runs(int32_t isa) {
    dpi_cpu cpu;
    dpi_cpu_detect(&cpu);
    return row_of(isa, &cpu) >= 0;
}

/* The set that a processor is best served by. */
static const kernel_set *best_set(void) {
    dpi_cpu cpu;
    dpi_cpu_detect(&cpu);
    return &sets[row_of(DPI_ISA_AUTO, &cpu)];
}

int32_t dpi_isa_best(void) { return best_set()->isa; }

const char *dpi_isa_openblas(void) { return best_set()->openblas; }

dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err) {
    dpi_cpu cpu;
    if (!dpi_isa_name(isa))
        return dpi_fail(err, DPI_STATUS_ARG, "isa is %d, must be a dpi_isa (0..%d)", (int)isa,
                        DPI_ISA_I8MM);
    dpi_cpu_detect(&cpu);
    const int row = row_of(isa, &cpu);
    if (row < 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "instruction set %s: this processor has %s at best", dpi_isa_name(isa),
                        dpi_isa_name(sets[row_of(DPI_ISA_AUTO, &cpu)].isa));
    for (int i = 0; i <= row; i++)
        if (runs(&sets[i], &cpu))
            sets[i].init(kernels);
    kernels->isa = sets[row].isa;
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
