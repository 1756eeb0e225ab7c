/* trace_qemu.c - see trace.h: for AArch64, where an emulator runs the program and a plugin of it
 * (trace_plugin.c) adds up what it sees, shared libraries included. $DPI_TRACE is the plugin's
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/dp/methods/trace.h"
#include "tests/dp/methods/trace_marks.h"

typedef struct seen {
    unsigned long long n_steps, n_memory, sum;
} seen;

static int read_seen(const char *path, seen *s) {
    FILE *f = path ? fopen(path, "r") : NULL;
    const int n = f ? fscanf(f, "%llu %llu %llu", &s->n_steps, &s->n_memory, &s->sum) : 0;
    if (f)
        fclose(f);
    return n == 3;
}

trace_result trace_compare(void (*prepare)(void *, int), void (*run)(void *), void *arg, int n_runs,
                           trace_report *report) {
    const char *path = getenv("DPI_TRACE");
    seen first = {0}, s;
    *report = (trace_report){0};
    prepare(arg, 0); /* binds the symbols of shared libraries */
    run(arg);
    for (int r = 0; r < n_runs; r++) {
        prepare(arg, r);
        syscall(SYS_getppid, TRACE_MARK, UINT64_C(1));
        run(arg);
        syscall(SYS_getppid, TRACE_MARK, UINT64_C(0));
        if (!read_seen(path, &s)) {
            snprintf(report->message, sizeof report->message, "no plugin of QEMU follows");
            return TRACE_UNAVAILABLE;
        }
        if (r == 0)
            first = s;
        report->n_steps = (int64_t)first.n_steps;
        report->n_memory = (int64_t)first.n_memory;
        if (memcmp(&s, &first, sizeof s) == 0)
            continue;
        snprintf(report->message, sizeof report->message,
                 "run %d: %llu instructions, %llu addresses; the first had %llu and %llu", r,
                 s.n_steps, s.n_memory, first.n_steps, first.n_memory);
        return TRACE_DIFFERS;
    }
    return TRACE_SAME;
}
