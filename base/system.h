/* system.h - what differs between operating systems, for base/ and all that stands on it. linux.c
 * has it for Linux; another system is another file of this interface. What the program alone needs
 * of a system is in tools/terminal/program_system.h. Internal. */
#ifndef DPI_SYSTEM_H
#define DPI_SYSTEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most n_bytes of the system's randomness, with the interface of getrandom(2): how many there
 * are, or -1 and errno. flags: 0. */
ssize_t dpi_system_random(void *buffer, size_t n_bytes, unsigned flags);

/* Sleeps while *word is `value`. It may return earlier: the caller looks again. */
void dpi_system_sleep_while(_Atomic uint32_t *word, uint32_t value);
void dpi_system_wake_all(_Atomic uint32_t *word);

/* Processors that this process may use, but for its quota; 0 where the system does not tell. */
int32_t dpi_system_processors(void);

/* Whether an AArch64 processor has the dot products of Armv8.2, and the products of matrices of
 * Armv8.6; of others false. Source: Linux, arch/arm64/elf_hwcaps, HWCAP_ASIMDDP, HWCAP2_I8MM. */
bool dpi_system_has_dotprod(void);
bool dpi_system_has_i8mm(void);

/* Wishes about pages of mmap: that they are large, that no core dump has them. */
void dpi_system_large_pages(void *p, size_t n_bytes);
void dpi_system_no_dump(void *p, size_t n_bytes);

/* No core dump of this process, and no other may look into it. False: errno. */
bool dpi_system_harden(void);

/* Zeroes memory; not optimised away. */
void dpi_system_wipe(void *p, size_t n_bytes);

/* Memory of this process in bytes, now and the most so far, and what the system could give now; 0
 * where it does not tell. */
void dpi_system_memory(uint64_t *now, uint64_t *most);
uint64_t dpi_system_memory_available(void);

/* What was written to fd is on the disk, with the file's size. False: errno. */
bool dpi_system_sync(int fd);

/* A file without a name in a folder, open for writing, so that nothing stays of a process that a
 * signal ends; -1 where the file system has none. Then its name, which no file may have yet.
 * False: errno. */
int dpi_system_open_nameless(const char *folder);
bool dpi_system_name_file(int fd, const char *path);

/* A path to the program that runs; nothing needs to be there. */
const char *dpi_system_program(void);

/* Whether the program has no dynamic loader. */
bool dpi_system_is_static(void);

#endif
