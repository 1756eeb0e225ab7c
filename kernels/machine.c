/* machine.c - measures what this machine can do at best, so that a benchmark can say what share of
 * it a kernel reaches. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "dpinfer/bench.h"
#include "dpinfer/process.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/struct.h"
#include "kernels/kernels.h"

DPI_STRUCT_DEFAULTS(dpi_machine, 0)

enum {
    REPEATS = 5,
    READ_MS = 200, /* at least: where OpenBLAS is linked, its threads spin for tens of milliseconds
                      when a process begins, in the way of ours */
    READ_BYTES = 1 << 28, /* more than caches hold */
    STEPS = 1 << 20,
};

static double best_read(const dpi_kernels *k, int32_t n_threads, const unsigned char *data) {
    double best = 0, first = omp_get_wtime(), begin = first;
    size_t part = READ_BYTES / (size_t)n_threads / 256 * 256;
    for (int repeat = 0; repeat < REPEATS || begin - first < READ_MS * 1e-3; repeat++) {
        uint64_t sum = 0;
        begin = omp_get_wtime();
#pragma omp parallel num_threads(n_threads) reduction(+ : sum)
        sum += k->probe_read(data + part * (size_t)omp_get_thread_num(), part);
        double seconds = omp_get_wtime() - begin;
        /* `data` is all ones: a sum of 0 cannot be, and the test keeps the reads alive. */
        if (sum != 0 && (double)part * n_threads / seconds > best)
            best = (double)part * n_threads / seconds;
    }
    return best;
}

static double best_ops(const dpi_kernels *k, int32_t n_threads, int f32) {
    double best = 0;
    if (f32 ? !k->probe_f32 : !k->probe_int8)
        return 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double ops = 0, begin = omp_get_wtime(), kept = 0;
#pragma omp parallel num_threads(n_threads) reduction(+ : ops, kept)
        {
            float f = 0;
            int32_t i = 0;
            ops += f32 ? k->probe_f32(STEPS, &f) : k->probe_int8(STEPS, &i);
            kept += (double)f + i;
        }
        double seconds = omp_get_wtime() - begin;
        if (kept == kept && ops / seconds > best)
            best = ops / seconds;
    }
    return best;
}

dpi_status dpi_machine_measure(int32_t n_threads, int32_t isa, dpi_machine *machine,
                               dpi_error *err) {
    DPI_CHECK_STRUCT(dpi_machine, machine, err);
    if (n_threads < 0 || n_threads > 1024)
        return dpi_fail(err, DPI_STATUS_ARG, "n_threads is %d, must be 0..1024", (int)n_threads);
    if (n_threads == 0)
        n_threads = dpi_processors();
    n_threads = dpi_process_threads(n_threads);
    dpi_kernels kernels;
    DPI_TRY(dpi_kernels_init(&kernels, isa, err));
    unsigned char *data = dpi_map(READ_BYTES);
    if (!data)
        return dpi_no_memory(err, "%d bytes to read", (int)READ_BYTES);
    memset(data, 1, READ_BYTES);
    dpi_machine made = {.read_bytes_per_second = best_read(&kernels, n_threads, data)};
    dpi_unmap(data, READ_BYTES);
    made.int8_ops_per_second = best_ops(&kernels, n_threads, 0);
    made.f32_ops_per_second = best_ops(&kernels, n_threads, 1);
    dpi_struct_give(machine, &made, sizeof made);
    return DPI_STATUS_OK;
}
