/* program_linux.c - see program_system.h. */
#include "tools/terminal/program_system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int system_rename_new(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

bool system_is_fixed(const char *path) {
    struct statx file;
    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &file) != 0)
        return false;
    const bool is_mounted = file.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    errno = is_mounted ? EBUSY : EPERM;
    return is_mounted || (file.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND));
}

int system_open_unnamed(char path[64]) {
    const int fd = memfd_create("unnamed", 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

bool system_find_program(char *path, size_t size) {
    const ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n >= 0)
        path[n] = '\0';
    return n >= 0;
}

void system_reset_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f)
        return;
    fputs("5", f); /* if the kernel refuses, the peak is merely too high */
    fclose(f);
}

bool system_is_bound(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) != 0 ||
           CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
}
