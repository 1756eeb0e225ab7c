/* kill_at.c - a library to preload: a signal comes just before the n-th call that changes a file or
 * waits for a disk.
 *   DPI_KILL_AT      n, from 1 on; 0: never
 *   DPI_KILL_CALL    calls of this name count; without it those that a journal and SQLite make
 *   DPI_KILL_SIGNAL  the signal; SIGKILL without it. SIGSTOP comes at all calls from the n-th on
 *   DPI_KILL_UNTIL   a file: when it is there no signal comes any more
 *   DPI_KILL_LOG     a file: its 8 bytes are the number of calls so far, of all processes with it
 *   DPI_KILL_NAMES   a file: a line for each call, its name */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long wanted, own_calls, *n_calls = &own_calls;
static int signal_number = SIGKILL, names = -1;
static const char *only, *until;

__attribute__((constructor)) static void set_up(void) {
    const char *n = getenv("DPI_KILL_AT"), *path = getenv("DPI_KILL_LOG");
    const char *number = getenv("DPI_KILL_SIGNAL"), *list = getenv("DPI_KILL_NAMES");
    wanted = n ? atol(n) : 0;
    signal_number = number ? atoi(number) : SIGKILL;
    only = getenv("DPI_KILL_CALL");
    until = getenv("DPI_KILL_UNTIL");
    names = list ? open(list, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *shared = fd < 0 ? MAP_FAILED
                          : mmap(NULL, sizeof *n_calls, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        n_calls = shared;
    if (fd >= 0)
        close(fd);
}

/* To what a write counts: MPI writes to pipes and sockets as often as it likes. */
static bool is_file(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static void count(const char *name, bool always) {
    if (names >= 0)
        dprintf(names, "%s\n", name);
    if ((only ? strcmp(only, name) != 0 : !always) || (until && access(until, F_OK) == 0))
        return;
    const long n = __atomic_add_fetch(n_calls, 1, __ATOMIC_RELAXED);
    if (n == wanted || (signal_number == SIGSTOP && wanted > 0 && n > wanted))
        kill(getpid(), signal_number);
}

/* name(parameters): counts, always or where it alone counts, and calls the function that this one
 * stands before. C has no cast from data to a function. */
#define WRAP(always, type, name, parameters, arguments)                                            \
    type name parameters {                                                                         \
        type(*next) parameters;                                                                    \
        void *symbol = dlsym(RTLD_NEXT, #name);                                                    \
        memcpy(&next, &symbol, sizeof next);                                                       \
        count(#name, always);                                                                      \
        return next arguments;                                                                     \
    }
WRAP(true, int, fsync, (int fd), (fd))
WRAP(true, int, fdatasync, (int fd), (fd))
WRAP(true, int, unlink, (const char *path), (path))
WRAP(true, ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at))
WRAP(true, ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at))
ssize_t write(int fd, const void *data, size_t n) {
    if (is_file(fd))
        count("write", false);
    return syscall(SYS_write, fd, data, n);
}
WRAP(false, int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(false, int, rename, (const char *from, const char *to), (from, to))
WRAP(false, int, renameat, (int from, const char *old, int to, const char *name),
     (from, old, to, name))
WRAP(false, int, renameat2, (int from, const char *old, int to, const char *name, unsigned flags),
     (from, old, to, name, flags))
WRAP(false, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
