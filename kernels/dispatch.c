#include "kernels/kernels.h"

#include <string.h>

#include "base/status.h"

static const struct {
    int32_t isa;
    const char *name;
} isas[] = {
    {DPI_ISA_AUTO, "auto"},
    {DPI_ISA_REF, "ref"},
    {DPI_ISA_AVX2, "avx2"},
    {DPI_ISA_AVX512, "avx512"},
};

enum { N_ISAS = sizeof isas / sizeof isas[0] };

const char *dpi_isa_name(int32_t isa) {
    for (int i = 0; i < N_ISAS; i++)
        if (isas[i].isa == isa)
            return isas[i].name;
    return NULL;
}

dpi_status dpi_isa_parse(const char *name, int32_t *isa, dpi_error *err) {
    for (int i = 0; i < N_ISAS; i++)
        if (name && strcmp(isas[i].name, name) == 0) {
            *isa = isas[i].isa;
            return DPI_STATUS_OK;
        }
    return dpi_fail(err, DPI_STATUS_ARG,
                    "instruction set '%.32s', must be auto, ref, avx2 or avx512",
                    name ? name : "");
}

int32_t dpi_isa_best(void) {
    dpi_cpu cpu;
    dpi_cpu_detect(&cpu);
    return cpu.isa;
}

const char *dpi_isa_openblas(void) {
    switch (dpi_isa_best()) {
    case DPI_ISA_AVX512:
        return "SkylakeX";
    case DPI_ISA_AVX2:
        return "Haswell";
    default:
        return NULL;
    }
}

dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err) {
    if (!dpi_isa_name(isa))
        return dpi_fail(err, DPI_STATUS_ARG, "isa is %d, must be a dpi_isa (0..3)", (int)isa);
    dpi_cpu cpu;
    dpi_cpu_detect(&cpu);
    if (isa == DPI_ISA_AUTO)
        isa = cpu.isa;
    if (isa > cpu.isa)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "instruction set %s: this processor has %s at best", dpi_isa_name(isa),
                        dpi_isa_name(cpu.isa));
    dpi_kernels_init_ref(kernels);
#if defined(__x86_64__)
    if (isa >= DPI_ISA_AVX2)
        dpi_kernels_init_avx2(kernels);
    if (isa == DPI_ISA_AVX2 && cpu.has_avxvnni)
        dpi_kernels_init_avxvnni_q(kernels);
    if (isa >= DPI_ISA_AVX512)
        dpi_kernels_init_avx512(kernels);
#endif
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
