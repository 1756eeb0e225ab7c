#include "kernels/cpu.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/mem.h"
#include "base/status.h"
#include "base/system.h"
#include "kernels/kernels.h"

/* ---- By name --------------------------------------------------------------------------------- */

/* The first row that fits counts. */
static const struct {
    const char *vendor; /* of CPUID; NULL: any */
    uint32_t family;    /* 0: any */
    dpi_tuning tuning;
} processors[] = {
    /* Zen 4, and Zen 3, which has not been measured. Of a stream Zen 4 reads up to 50 % more
     * without prefetch instructions: its hardware prefetches one stream by itself, and they disturb
     * that. */
    {"AuthenticAMD",
     0x19,
     {.quantized = {[DPI_PANELS] = {{2048, 24576}, {2048, 24576}}, [DPI_STREAM] = {{0, 0}, {0, 0}}},
      .f16_l2 = {[DPI_SEVERAL] = 16384, [DPI_SINGLE] = 0}}},
    /* Emerald Rapids reads 7 to 15 % more of one sequence's weights with prefetches into L2. */
    {"GenuineIntel",
     0,
     {.quantized = {[DPI_PANELS] = {{8192, 24576}, {8192, 24576}},
                    [DPI_STREAM] = {{8192, 24576}, {8192, 24576}}},
      .f16_l2 = {16384, 16384}}},
    /* Zen 5 reads 5 to 15 % less with them. */
    {NULL,
     0,
     {.quantized = {[DPI_PANELS] = {{8192, 24576}, {8192, 0}},
                    [DPI_STREAM] = {{8192, 24576}, {8192, 0}}},
      .f16_l2 = {16384, 16384}}},
};

#if defined(__x86_64__)
/* Neither gcc nor clang know AVX-VNNI's name in every version that we build with, and clang 14 has
 * none for F16C, which every processor with AVX2 and FMA has. */
static void detect_features(dpi_cpu *cpu) {
    unsigned a, b, c, d;
    __builtin_cpu_init();
    cpu->has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    cpu->has_avxvnni = cpu->has_avx2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    cpu->has_avx512 = cpu->has_avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

/* vendor [13] */
static uint32_t family_of(char *vendor) {
    unsigned a, b, c, d;
    memset(vendor, 0, 13);
    if (!__get_cpuid(0, &a, &b, &c, &d))
        return 0;
    memcpy(vendor, &b, 4);
    memcpy(vendor + 4, &d, 4);
    memcpy(vendor + 8, &c, 4);
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    uint32_t family = a >> 8 & 15;
    return family == 15 ? family + (a >> 20 & 255) : family;
}
#else
static void detect_features(dpi_cpu *cpu) {
    cpu->has_dotprod = dpi_system_has_dotprod();
    cpu->has_i8mm = cpu->has_dotprod && dpi_system_has_i8mm();
}
static uint32_t family_of(char *vendor) {
    vendor[0] = '\0';
    return 0;
}
#endif

void dpi_cpu_detect(dpi_cpu *cpu) {
    char vendor[13];
    uint32_t family = family_of(vendor);
    size_t i = 0;
    while ((processors[i].vendor && strcmp(processors[i].vendor, vendor) != 0) ||
           (processors[i].family && processors[i].family != family))
        i++;
    *cpu = (dpi_cpu){.tuning = processors[i].tuning};
    detect_features(cpu);
}

/* ---- By measurement: Winograd products ------------------------------------------------------- */

enum {
    REPEATS = 5,
    ROWS = 33,
    N_IN = 512,
    N_OUT = 32,
    BLOCKS = ROWS * N_IN / DPI_Q8_BLOCK,
    CALLS = 8,
};

/* Rows with which a class of rows is measured. */
static const int32_t measured_rows[] = {[DPI_ROWS_FEW] = 9, [DPI_ROWS_MANY] = ROWS};

/* Below this share of the time of plain products: less is in the noise, and blocks are more
 * work. */
static const double WORTH = 0.98;

/* One product, all zeros: how long it takes does not depend on them. */
typedef struct trial {
    float y[ROWS * N_OUT];
    dpi_q8_plain plain[BLOCKS];
    dpi_q8_sums sums[BLOCKS];
    dpi_q8_winograd winograd[BLOCKS];
    unsigned char weights[N_OUT * N_IN / 32 * 18]; /* Q4_0, and Q4_K */
} trial;

static double seconds_of(const dpi_kernels *k, dpi_matmul_q_fn *multiply, int32_t n_rows, trial *t,
                         bool winograd) {
    const dpi_q8 x = {t->plain, t->sums, winograd ? t->winograd : NULL};
    double begin = omp_get_wtime();
    for (int i = 0; i < CALLS; i++)
        multiply(t->y, N_OUT, &x, n_rows, t->weights, N_IN, N_OUT, &k->tuning);
    return omp_get_wtime() - begin;
}

static bool is_faster(const dpi_kernels *k, dpi_matmul_q_fn *multiply, int32_t n_rows, trial *t) {
    double plain = 1, winograd = 1; /* the fastest: another process may have been in the way */
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double seconds = seconds_of(k, multiply, n_rows, t, false);
        plain = seconds < plain ? seconds : plain;
        seconds = seconds_of(k, multiply, n_rows, t, true);
        winograd = seconds < winograd ? seconds : winograd;
    }
    return winograd < WORTH * plain;
}

dpi_status dpi_cpu_measure(dpi_cpu *cpu, dpi_error *err) {
    dpi_kernels k;
    dpi_cpu_detect(cpu);
    DPI_TRY(dpi_kernels_init(&k, DPI_ISA_AUTO, err));
    if (!k.has_winograd)
        return DPI_STATUS_OK;
    trial *t = dpi_calloc(1, sizeof *t);
    if (!t)
        return dpi_no_memory(err, "the times of kernels");
    for (int rows = DPI_ROWS_FEW; rows <= DPI_ROWS_MANY; rows++) {
        bool(*winograd)[2] = cpu->tuning.winograd;
        winograd[false][rows] = is_faster(&k, k.matmul_q4_0, measured_rows[rows], t);
        winograd[true][rows] = is_faster(&k, k.matmul_q4_k, measured_rows[rows], t);
    }
    free(t);
    return DPI_STATUS_OK;
}
