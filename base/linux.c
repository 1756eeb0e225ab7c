/* linux.c - see system.h. */
#define _GNU_SOURCE /* sched_getaffinity, dl_iterate_phdr, O_TMPFILE */
#include "base/system.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

ssize_t dpi_system_random(void *buffer, size_t n_bytes, unsigned flags) {
    return getrandom(buffer, n_bytes, flags);
}

/* ---- Threads and processors ------------------------------------------------------------------ */

void dpi_system_sleep_while(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void dpi_system_wake_all(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int32_t dpi_system_processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

#ifdef __aarch64__
bool dpi_system_has_dotprod(void) { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP; }
bool dpi_system_has_i8mm(void) { return getauxval(AT_HWCAP2) & HWCAP2_I8MM; }
#else
bool dpi_system_has_dotprod(void) { return false; }
bool dpi_system_has_i8mm(void) { return false; }
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

void dpi_system_large_pages(void *p, size_t n_bytes) { madvise(p, n_bytes, MADV_HUGEPAGE); }
void dpi_system_no_dump(void *p, size_t n_bytes) { madvise(p, n_bytes, MADV_DONTDUMP); }

bool dpi_system_harden(void) {
    const struct rlimit none = {0, 0};
    return prctl(PR_SET_DUMPABLE, 0) == 0 && setrlimit(RLIMIT_CORE, &none) == 0;
}

void dpi_system_wipe(void *p, size_t n_bytes) { explicit_bzero(p, n_bytes); }

/* A field in KiB of a file of proc(5), in bytes; 0: it is not there. */
static uint64_t field_bytes(const char *path, const char *field) {
    FILE *f = fopen(path, "r");
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

void dpi_system_memory(uint64_t *now, uint64_t *most) {
    if (now)
        *now = field_bytes("/proc/self/status", "VmRSS");
    if (most)
        *most = field_bytes("/proc/self/status", "VmHWM");
}

uint64_t dpi_system_memory_available(void) { return field_bytes("/proc/meminfo", "MemAvailable"); }

/* ---- Files ----------------------------------------------------------------------------------- */

bool dpi_system_sync(int fd) { return fdatasync(fd) == 0; }

int dpi_system_open_nameless(const char *folder) {
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

bool dpi_system_name_file(int fd, const char *path) {
    char own[40];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

/* ---- The program ----------------------------------------------------------------------------- */

const char *dpi_system_program(void) { return "/proc/self/exe"; }

/* The first object is the program: one that is linked dynamically names its loader. */
static int is_dynamic(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++)
        *(bool *)found |= object->dlpi_phdr[i].p_type == PT_INTERP;
    return 1;
}

bool dpi_system_is_static(void) {
    bool dynamic = false;
    dl_iterate_phdr(is_dynamic, &dynamic);
    return !dynamic;
}
