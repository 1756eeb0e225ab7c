/* kill_at.c - a library to preload: the process is killed (SIGKILL) just before the DPI_KILL_AT-th
 * call that changes a file or waits for a disk, from 1 on; 0: never. At its end, and when it is
 * killed, nothing else is done. The number of calls so far is in the file DPI_KILL_LOG, 8 bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static long wanted, *counter;

__attribute__((constructor)) static void set_up(void) {
    const char *n = getenv("DPI_KILL_AT"), *path = getenv("DPI_KILL_LOG");
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    wanted = n ? atol(n) : 0;
    if (fd >= 0)
        counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counter == MAP_FAILED)
        counter = NULL;
    if (fd >= 0)
        close(fd);
}

static void count(void) {
    if (counter && __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED) == wanted)
        kill(getpid(), SIGKILL);
}

/* The function that this one stands before. C has no cast from data to a function. */
#define NEXT(name, pointer)                                                                        \
    do {                                                                                           \
        void *symbol = dlsym(RTLD_NEXT, name);                                                     \
        memcpy(&(pointer), &symbol, sizeof symbol);                                                \
    } while (0)

int fsync(int fd) {
    int (*next)(int);
    NEXT("fsync", next);
    count();
    return next(fd);
}

int fdatasync(int fd) {
    int (*next)(int);
    NEXT("fdatasync", next);
    count();
    return next(fd);
}

int unlink(const char *path) {
    int (*next)(const char *);
    NEXT("unlink", next);
    count();
    return next(path);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n_bytes, off64_t offset) {
    ssize_t (*next)(int, const void *, size_t, off64_t);
    NEXT("pwrite64", next);
    count();
    return next(fd, bytes, n_bytes, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t n_bytes, off_t offset) {
    ssize_t (*next)(int, const void *, size_t, off_t);
    NEXT("pwrite", next);
    count();
    return next(fd, bytes, n_bytes, offset);
}
