/* program_system.h - what the program alone needs of an operating system, beside POSIX:
 * program_linux.c has it for Linux. base/system.h has what the library needs. */
#ifndef DPI_TOOLS_PROGRAM_SYSTEM_H
#define DPI_TOOLS_PROGRAM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* rename(from, to) where no file is at `to`. 0; or -1 and errno: EEXIST, and EINVAL or ENOSYS where
 * the file system cannot do that. */
int system_rename_new(const char *from, const char *to);

/* Whether something beside permissions keeps rename from replacing a file: errno says what (EBUSY:
 * it is mounted, as a container's files are; EPERM: it is marked so). A file that is not there, or
 * cannot be looked at, is not fixed. */
bool system_is_fixed(const char *path);

/* A file in memory without a name, which programs that are started get too; path: how these can
 * open it. -1: errno. */
int system_open_unnamed(char path[64]);

/* The path of the program that runs. False: errno. */
bool system_find_program(char *path, size_t size);

/* From here on the peak of dpi_process_memory counts anew, where the system can do that. */
void system_reset_peak(void);

/* Whether this process may use some of the machine's processors alone. */
bool system_is_bound(void);

#endif
