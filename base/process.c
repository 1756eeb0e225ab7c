#include "dpinfer/process.h"

#include <errno.h>
#include <pthread.h>

#include "base/format.h"
#include "base/status.h"
#include "base/system.h"

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

void dpi_process_memory(uint64_t *now, uint64_t *most) { dpi_system_memory(now, most); }

dpi_status dpi_process_harden(dpi_error *err) {
    if (!dpi_system_harden())
        return dpi_fail(err, DPI_STATUS_UNSUPPORTED, "memory cannot be kept from core dumps: %s",
                        dpi_reason(errno));
    return DPI_STATUS_OK;
}
