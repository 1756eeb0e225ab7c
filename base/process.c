#include "dpinfer/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/format.h"
#include "base/status.h"

enum { MOST_THREADS = 1024 };

/* A thread that lives until the gate is open. */
static void *wait_at(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int32_t dpi_process_threads(int32_t wanted) {
    pthread_t threads[MOST_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int32_t n = 1;
    pthread_mutex_lock(&gate);
    while (n < wanted && n < MOST_THREADS &&
           pthread_create(&threads[n], NULL, wait_at, &gate) == 0)
        n++;
    pthread_mutex_unlock(&gate);
    for (int32_t i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    return n;
}

/* A field of /proc/self/status in bytes; 0: it is not there. */
static uint64_t field_bytes(const char *field) {
    FILE *f = fopen("/proc/self/status", "r");
    const size_t n = strlen(field);
    char line[256];
    uint64_t kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, n) == 0 && line[n] == ':')
            kib = strtoull(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib * 1024;
}

void dpi_process_memory(uint64_t *now, uint64_t *most) {
    if (now)
        *now = field_bytes("VmRSS");
    if (most)
        *most = field_bytes("VmHWM");
}

dpi_status dpi_process_harden(dpi_error *err) {
    const struct rlimit none = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "memory cannot be kept from core dumps: %s",
                        dpi_reason(errno));
    return DPI_STATUS_OK;
}
