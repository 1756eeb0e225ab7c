/* bench.h - what this machine can do at best, and what a session has done, for benchmarks. Not part
 * of dpinfer.h. */
#ifndef DPINFER_BENCH_H
#define DPINFER_BENCH_H

#include "dpinfer/isa.h"
#include "dpinfer/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of this machine, measured now (about half a second), for benchmarks. */
typedef struct dpi_machine {
    size_t struct_size;
    double read_bytes_per_second; /* memory, all threads at once */
    double int8_ops_per_second;   /* 8-bit multiply and add, two operations each; 0 for ISA ref */
    double f32_ops_per_second;    /* the same in f32 */
} dpi_machine;

DPI_API void dpi_machine_init_size(dpi_machine *machine, size_t size);
#define dpi_machine_init(o) dpi_machine_init_size((o), sizeof *(o))

/* n_threads 0: the processors this process may use; isa: a dpi_isa. Errors: ARG,
 * UNSUPPORTED (isa), MEMORY (256 MB are read). */
DPI_API DPI_MUST_CHECK dpi_status dpi_machine_measure(int32_t n_threads, int32_t isa,
                                                      dpi_machine *machine, dpi_error *err);

/* Attention of all passes of a session so far: seconds of its first thread, in which the others are
 * at work as well, and the operations of all threads (a multiplication and an addition are two). */
DPI_API void dpi_session_attention(const dpi_session *session, double *seconds,
                                   double *operations);

#ifdef __cplusplus
}
#endif
#endif
