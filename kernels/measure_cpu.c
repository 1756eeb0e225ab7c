/* measure_cpu.c - what a processor does better that its name does not tell: products with fewer
 * multiplications, by their times. */
#include <omp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "kernels/cpu.h"
#include "kernels/kernels.h"

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
