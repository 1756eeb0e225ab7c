/* process.h - what the system gives to this process. */
#ifndef DPINFER_PROCESS_H
#define DPINFER_PROCESS_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many threads can compute at once here and now: `wanted`, or as many as the system allows
 * (processes of the user, memory for stacks), 1..1024. Threads are started to find out, and have
 * ended when it returns. */
DPI_API int32_t dpi_process_threads(int32_t wanted);

#ifdef __cplusplus
}
#endif
#endif
