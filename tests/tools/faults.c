/* faults.c - a library to preload: one call of the system or of the allocator fails.
 *   DPI_FAULT      the call that fails, from 1 on; 0: none
 *   DPI_FAULT_LOG  a file: a line for each call, "number function place"; a place is the last four
 * callers A program that does the same each time makes the same calls, so that whoever has the log
 * knows which numbers are worth a run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long wanted, n_calls;
static int log_fd = -1;
static bool active;
static __thread bool inside; /* what this library itself calls does not count */

__attribute__((constructor)) static void set_up(void) {
    const char *n = getenv("DPI_FAULT"), *path = getenv("DPI_FAULT_LOG");
    void *frames[2];
    inside = true;
    backtrace(frames, 2); /* loads what it needs now */
    wanted = n ? atol(n) : 0;
    if (path)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                              0600);
    inside = false;
    active = true;
}

/* The next function of that name into the pointer at `function`: C has no cast from data to one. */
static void find_next(const char *name, void *function) {
    bool was = inside;
    inside = true;
    void *symbol = dlsym(RTLD_NEXT, name);
    inside = was;
    if (!symbol)
        abort();
    memcpy(function, &symbol, sizeof symbol);
}

static void log_call(long n, const char *function) {
    enum { DEPTH = 6 };
    void *frames[DEPTH];
    uintptr_t place = 0;
    int depth = backtrace(frames, DEPTH);
    for (int i = 2; i < depth; i++)
        place = place * 31 + (uintptr_t)frames[i];
    char line[128];
    int length = snprintf(line, sizeof line, "%ld %s %zx\n", n, function, place);
    syscall(SYS_write, log_fd, line, (size_t)length);
}

/* Calls that libraries make which do not survive it do not count: libgomp ends the program, and
 * libjansson 2.14 goes on with what it did not get. */
static bool is_of_others(void) {
    void *frames[5];
    Dl_info from;
    inside = true;
    bool found = false;
    int depth = backtrace(frames, 5);
    for (int i = 2; i < depth && !found; i++)
        found = dladdr(frames[i], &from) != 0 && from.dli_fname &&
                (strstr(from.dli_fname, "libgomp") || strstr(from.dli_fname, "libjansson"));
    inside = false;
    return found;
}

/* Whether this call is the one; errno is then `code`. */
static bool fails(const char *function, int code) {
    if (!active || inside || is_of_others())
        return false;
    long n = __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED);
    if (log_fd >= 0) {
        inside = true;
        log_call(n, function);
        inside = false;
    }
    if (n != wanted)
        return false;
    errno = code;
    return true;
}

/* name(parameters) that calls the next one with `arguments`, unless it is to fail. */
#define WRAP(type, name, parameters, arguments, code, failure)                                     \
    type name parameters {                                                                         \
        static type(*next) parameters;                                                             \
        if (fails(#name, code))                                                                    \
            return failure;                                                                        \
        if (!next)                                                                                 \
            find_next(#name, &next);                                                               \
        return next arguments;                                                                     \
    }

/* dlsym(3) itself allocates, before these can be found. */
void *__libc_malloc(size_t n_bytes);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t n_bytes);
void *__libc_memalign(size_t alignment, size_t n_bytes);

void *malloc(size_t n_bytes) { return fails("malloc", ENOMEM) ? NULL : __libc_malloc(n_bytes); }
void *calloc(size_t n, size_t size) {
    return fails("calloc", ENOMEM) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *block, size_t n_bytes) {
    return fails("realloc", ENOMEM) ? NULL : __libc_realloc(block, n_bytes);
}
void *aligned_alloc(size_t alignment, size_t n_bytes) {
    return fails("aligned_alloc", ENOMEM) ? NULL : __libc_memalign(alignment, n_bytes);
}

WRAP(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), EIO, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, stat, (const char *restrict path, struct stat *restrict st), (path, st), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, mkostemp, (char *path, int flags), (path, flags), ENOSPC, -1)
WRAP(ssize_t, getrandom, (void *data, size_t n, unsigned flags), (data, n, flags), ENOSYS, -1)
WRAP(void *, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t offset),
     (at, n, protection, flags, fd, offset), ENOMEM, MAP_FAILED)

/* The first failing write is short: what comes next must go on, or fail in its turn. */
ssize_t write(int fd, const void *data, size_t n) {
    if (fails("write", ENOSPC))
        return -1;
    if (fails("short write", 0) && n > 1)
        n /= 2;
    return syscall(SYS_write, fd, data, n);
}

int close(int fd) {
    bool failed = fails("close", EIO);
    int result = (int)syscall(SYS_close, fd);
    if (failed)
        errno = EIO;
    return failed ? -1 : result;
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails("open", EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*function)(void *), void *restrict argument) {
    static int (*next)(pthread_t *restrict, const pthread_attr_t *restrict, void *(*)(void *),
                       void *restrict);
    if (fails("pthread_create", EAGAIN))
        return EAGAIN;
    if (!next)
        find_next("pthread_create", &next);
    return next(thread, attributes, function, argument);
}
