/* faults.c - a library to preload: one call of the system or of the allocator fails.
 *   DPI_FAULT      the call that fails, from 1 on; 0: none
 *   DPI_FAULT_SIGNAL  it does not fail: the process gets this signal there, DPI_FAULT_TIMES times
 *   DPI_FAULT_LOG  a file: a line for each call, "number function place"; a place is the last four
 * callers A program that does the same each time makes the same calls, so that whoever has the log
 * knows which numbers are worth a run. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static long wanted, n_calls;
static int log_fd = -1, signal_number, n_signals = 1;
static bool active;
static __thread bool inside; /* what this library itself calls does not count */

static int number_of(const char *name, int otherwise) {
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}

__attribute__((constructor)) static void set_up(void) {
    const char *n = getenv("DPI_FAULT"), *path = getenv("DPI_FAULT_LOG");
    void *frames[2];
    inside = true;
    signal_number = number_of("DPI_FAULT_SIGNAL", 0);
    n_signals = number_of("DPI_FAULT_TIMES", 1);
    unsetenv("LD_PRELOAD"); /* a program that this one starts has calls of its own */
    backtrace(frames, 2);   /* loads what it needs now */
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
    for (int i = 2; i < depth; i++) {
        Dl_info info;
        place = place * 31 + (uintptr_t)frames[i];
        if (dladdr(frames[i], &info)) /* libraries are elsewhere in another run */
            place -= (uintptr_t)info.dli_fbase;
    }
    char line[128];
    int length = snprintf(line, sizeof line, "%ld %s %zx\n", n, function, place);
    syscall(SYS_write, log_fd, line, (size_t)length);
}

/* Calls of libgomp do not count: it ends the program. So does libgfortran, which is loaded with
 * OpenBLAS: its constructor ends the program, or crashes on the way out. Who loads it can only see
 * to it that there is memory (kernels/gemm.c, eval/loaded.c). */
static bool is_of_others(void) {
    void *frames[5];
    Dl_info info;
    inside = true;
    bool found = false;
    int depth = backtrace(frames, 5);
    for (int i = 2; i < depth && !found; i++)
        found = dladdr(frames[i], &info) && info.dli_fname &&
                (strstr(info.dli_fname, "/libgomp") || strstr(info.dli_fname, "/libgfortran"));
    inside = false;
    return found;
}

static void send_signals(void) {
    inside = true;
    for (int i = 0; i < n_signals; i++)
        kill(getpid(), signal_number);
    inside = false;
}

/* Whether this call is the one; errno is then `code`. */
static bool fails(const char *function, int code) {
    if (!active || inside || (n_calls >= wanted && log_fd < 0) || is_of_others())
        return false;
    long n = __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED);
    if (log_fd >= 0) {
        inside = true;
        log_call(n, function);
        inside = false;
    }
    if (n != wanted)
        return false;
    if (signal_number) {
        send_signals();
        return false;
    }
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

int posix_memalign(void **block, size_t alignment, size_t n_bytes) {
    if (fails("posix_memalign", ENOMEM))
        return ENOMEM;
    *block = __libc_memalign(alignment, n_bytes);
    return *block ? 0 : ENOMEM;
}
void *memalign(size_t alignment, size_t n_bytes) {
    return fails("memalign", ENOMEM) ? NULL : __libc_memalign(alignment, n_bytes);
}

WRAP(ssize_t, read, (int fd, void *data, size_t n), (fd, data, n), EIO, -1)
WRAP(int, fsync, (int fd), (fd), EIO, -1)
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode), EIO, -1)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), EIO, -1)
WRAP(int, stat, (const char *restrict path, struct stat *restrict st), (path, st), EIO, -1)
WRAP(int, rename, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, mkostemp, (char *path, int flags), (path, flags), ENOSPC, -1)
WRAP(ssize_t, getrandom, (void *data, size_t n, unsigned flags), (data, n, flags), ENOSYS, -1)
WRAP(int, getentropy, (void *data, size_t n), (data, n), ENOSYS, -1)
WRAP(void *, mmap, (void *at, size_t n, int protection, int flags, int fd, off_t offset),
     (at, n, protection, flags, fd, offset), ENOMEM, MAP_FAILED)
WRAP(int, dup, (int fd), (fd), EMFILE, -1)
WRAP(DIR *, opendir, (const char *path), (path), EMFILE, NULL)
WRAP(DIR *, fdopendir, (int fd), (fd), ENOMEM, NULL)
WRAP(struct dirent *, readdir, (DIR * dir), (dir), EIO, NULL)
WRAP(FILE *, fopen, (const char *restrict path, const char *restrict mode), (path, mode), EMFILE,
     NULL)
WRAP(int, fflush, (FILE * file), (file), ENOSPC, EOF)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), EIO, -1)
WRAP(off_t, lseek, (int fd, off_t at, int from), (fd, at, from), EIO, -1)
WRAP(int, renameat2, (int from, const char *old, int to, const char *name, unsigned flags),
     (from, old, to, name, flags), ENOSPC, -1)
WRAP(int, link, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, unlink, (const char *path), (path), EIO, -1)
WRAP(int, fstatat, (int fd, const char *restrict path, struct stat *restrict st, int flags),
     (fd, path, st, flags), EIO, -1)
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, -1)
WRAP(char *, mkdtemp, (char *path), (path), ENOSPC, NULL)
WRAP(int, access, (const char *path, int how), (path, how), EIO, -1)
WRAP(int, faccessat, (int fd, const char *path, int how, int flags), (fd, path, how, flags), EIO,
     -1)
WRAP(ssize_t, readlink, (const char *restrict path, char *restrict to, size_t n), (path, to, n),
     EIO, -1)
WRAP(char *, realpath, (const char *restrict path, char *restrict real), (path, real), EIO, NULL)
WRAP(int, renameat, (int from, const char *old, int to, const char *name), (from, old, to, name),
     ENOSPC, -1)
WRAP(int, symlink, (const char *from, const char *to), (from, to), ENOSPC, -1)
WRAP(int, flock, (int fd, int how), (fd, how), ENOLCK, -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, -1)
WRAP(FILE *, fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
WRAP(int, fclose, (FILE * file), (file), ENOSPC, EOF)
size_t fwrite(const void *restrict data, size_t size, size_t n, FILE *restrict file) {
    static size_t (*next)(const void *restrict, size_t, size_t, FILE *restrict);
    if (fails("fwrite", ENOSPC)) {
        file->_flags |= _IO_ERR_SEEN; /* what ferror(3) says */
        return 0;
    }
    if (!next)
        find_next("fwrite", &next);
    return next(data, size, n, file);
}
WRAP(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), ECHILD, -1)
WRAP(int, posix_spawnp,
     (pid_t *restrict pid, const char *restrict path,
      const posix_spawn_file_actions_t *restrict actions,
      const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
      char *const envp[restrict]),
     (pid, path, actions, attributes, argv, envp), EAGAIN, EAGAIN)
WRAP(int, mlock, (const void *at, size_t n), (at, n), ENOMEM, -1)
WRAP(int, madvise, (void *at, size_t n, int advice), (at, n, advice), EINVAL, -1)
WRAP(ssize_t, pread, (int fd, void *data, size_t n, off_t at), (fd, data, n, at), EIO, -1)
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t at), (fd, data, n, at), ENOSPC, -1)
/* The names that SQLite calls. */
WRAP(int, fdatasync, (int fd), (fd), EIO, -1)
WRAP(ssize_t, pread64, (int fd, void *data, size_t n, off64_t at), (fd, data, n, at), EIO, -1)
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t n, off64_t at), (fd, data, n, at), ENOSPC,
     -1)
WRAP(int, fstat64, (int fd, struct stat64 *st), (fd, st), EIO, -1)
WRAP(int, stat64, (const char *restrict path, struct stat64 *restrict st), (path, st), EIO, -1)
WRAP(int, ftruncate64, (int fd, off64_t n), (fd, n), EIO, -1)

/* The first failing write is short: what comes next must go on, or fail in its turn. A signal comes
 * before it, or after it and before whoever called it knows what was written. */
ssize_t write(int fd, const void *data, size_t n) {
    if (fails("write", ENOSPC))
        return -1;
    if (!signal_number && fails("short write", 0) && n > 1)
        n /= 2;
    const ssize_t written = syscall(SYS_write, fd, data, n);
    if (signal_number)
        fails("write that is done", 0);
    return written;
}

int close(int fd) {
    bool failed = fails("close", EIO);
    int result = (int)syscall(SYS_close, fd);
    if (failed)
        errno = EIO;
    return failed ? -1 : result;
}

static int open_at(const char *function, int folder, const char *path, int flags, va_list args) {
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    return fails(function, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* open(2) under each of its names. */
#define WRAP_OPEN(name, folder, ...)                                                               \
    int name(__VA_ARGS__) {                                                                        \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const int fd = open_at(#name, folder, path, flags, args);                                  \
        va_end(args);                                                                              \
        return fd;                                                                                 \
    }
WRAP_OPEN(open, AT_FDCWD, const char *path, int flags, ...)
WRAP_OPEN(open64, AT_FDCWD, const char *path, int flags, ...)
WRAP_OPEN(openat, folder, int folder, const char *path, int flags, ...)

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
