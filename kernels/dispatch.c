#include "kernels/kernels.h"

#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/status.h"
#include "kernels/quant.h"

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
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        return DPI_ISA_AVX512;
    /* Every processor with AVX2 and FMA has F16C, which clang 14 cannot ask for. */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return DPI_ISA_AVX2;
#endif
    return DPI_ISA_REF;
}

#if defined(__x86_64__)
/* A feature of AVX2 processors rather than an ISA: results do not change. Neither gcc nor clang
 * know its name in every version that we build with. */
static bool has_avxvnni(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

dpi_status dpi_kernels_init(dpi_kernels *kernels, int32_t isa, dpi_error *err) {
    if (!dpi_isa_name(isa))
        return dpi_fail(err, DPI_STATUS_ARG, "isa is %d, must be a dpi_isa (0..3)", (int)isa);
    int32_t best = dpi_isa_best();
    if (isa == DPI_ISA_AUTO)
        isa = best;
    if (isa > best)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED,
                        "instruction set %s: this processor has %s at best", dpi_isa_name(isa),
                        dpi_isa_name(best));
    dpi_kernels_init_ref(kernels);
#if defined(__x86_64__)
    if (isa >= DPI_ISA_AVX2)
        dpi_kernels_init_avx2(kernels);
    if (isa == DPI_ISA_AVX2 && has_avxvnni())
        dpi_kernels_init_avxvnni_q(kernels);
    if (isa >= DPI_ISA_AVX512)
        dpi_kernels_init_avx512(kernels);
#endif
    kernels->isa = isa;
    return DPI_STATUS_OK;
}

dpi_matmul_q_fn *dpi_kernels_matmul_q(const dpi_kernels *kernels, uint32_t type) {
    switch (type) {
#define TYPE(name, id) \
    case id:           \
        return kernels->matmul_##name;
        DPI_MATMUL_Q_TYPES(TYPE)
#undef TYPE
    default:
        return NULL;
    }
}

dpi_matmul_h_fn *dpi_kernels_matmul_h(const dpi_kernels *kernels, uint32_t type) {
    switch (type) {
#define TYPE(name, id) \
    case id:           \
        return kernels->matmul_##name;
        DPI_MATMUL_H_TYPES(TYPE)
#undef TYPE
    default:
        return NULL;
    }
}
