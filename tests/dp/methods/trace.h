/* trace.h - what a function executes, instruction by instruction: where the program counter goes
 * and which addresses are read and written, compared between runs on different data. On the
 * processor itself, stepping by its trap flag, so with every instruction set (trace.c: x86-64
 * Linux), or by an emulator (trace_qemu.c: AArch64). One thread. */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>

typedef enum trace_result {
    TRACE_SAME,
    TRACE_DIFFERS,
    TRACE_UNAVAILABLE, /* no objdump to read the instructions with */
} trace_result;

typedef struct trace_report {
    int64_t n_steps;   /* instructions of a run */
    int64_t n_memory;  /* of them with an address that was compared */
    char message[256]; /* what differs, or why there is no trace */
} trace_report;

/* For r in [0, n_runs): prepare(arg, r), unobserved, then run(arg), step by step, without system
 * calls. run's instructions, up to 2^20, must be the same in the same order with the same addresses
 * in all runs. Within shared libraries only the program counter is compared. Gathers, whose
 * addresses stand in a vector, count as a difference. */
trace_result trace_compare(void (*prepare)(void *arg, int r), void (*run)(void *arg), void *arg,
                           int n_runs, trace_report *report);

#endif
