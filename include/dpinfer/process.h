/* process.h - what the system gives to this process. */
#ifndef DPINFER_PROCESS_H
#define DPINFER_PROCESS_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Processors that this process may use, 1..1024, and so the threads of what is not told another
 * number: those of its affinity mask, and at most as many as the CPU quotas of its control groups
 * (a container's) come to, rounded up. */
DPI_API int32_t dpi_processors(void);

/* How many threads can compute at once here and now: `wanted`, or as many as the system allows
 * (processes of the user, memory for stacks), 1..1024. Threads are started to find out, and have
 * ended when it returns. */
DPI_API int32_t dpi_process_threads(int32_t wanted);

/* Memory of this process in bytes: now, and the most so far. Either may be NULL; 0 where the system
 * does not tell. Source: proc(5), VmRSS and VmHWM. */
DPI_API void dpi_process_memory(uint64_t *now, uint64_t *most);

/* Keeps what is in this process's memory from others, for good: no core dump is written, and no
 * process of the same user can attach to it or read /proc/PID/mem. For programs that hold records;
 * call it before they are read. The administrator, and what is written to swap, are not kept out.
 * Errors: UNSUPPORTED (the system refuses). */
DPI_API DPI_MUST_CHECK dpi_status dpi_process_harden(dpi_error *err);

#ifdef __cplusplus
}
#endif
#endif
