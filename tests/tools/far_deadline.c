/* far_deadline.c - a library to preload: the time of day is that of tomorrow. Who computes a
 * deadline from it, and then waits, waits for a day: a test sees that it does, and need not measure
 * how long. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    const int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += 24 * 60 * 60;
    return status;
}
