/* failalloc.c - linked with -Wl,--wrap=... so that a test can make one allocation fail. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/support/support.h"

static _Atomic int64_t seen, target;

int64_t fail_allocation(int64_t n) {
    int64_t before = atomic_exchange(&seen, 0);
    atomic_store(&target, n);
    return before;
}

static bool fails(void) { return atomic_fetch_add(&seen, 1) + 1 == atomic_load(&target); }

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__real_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
void *__wrap_aligned_alloc(size_t alignment, size_t n) {
    return fails() ? NULL : __real_aligned_alloc(alignment, n);
}
void *__wrap_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset) {
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, n, protection, flags, fd, offset);
}
