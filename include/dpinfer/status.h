/* status.h - status codes, errors, versions, and the callbacks that every topic shares. */
#ifndef DPINFER_STATUS_H
#define DPINFER_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DPI_API __attribute__((visibility("default")))
#define DPI_MUST_CHECK __attribute__((warn_unused_result))
#else
#define DPI_API
#define DPI_MUST_CHECK
#endif

/* Version of the binary interface: changes when a caller must be recompiled. */
#define DPI_ABI_VERSION 2u

/* One list for code, name and text. Codes are stable. */
#define DPI_STATUS_MAP(XX)                                                   \
    XX(0, OK, "success")                                                     \
    XX(1, ARG, "invalid argument")                                           \
    XX(2, MEMORY, "out of memory")                                           \
    XX(3, IO, "cannot read or write a file")                                 \
    XX(4, FORMAT, "malformed file")                                          \
    XX(5, UNSUPPORTED, "not supported")                                      \
    XX(6, LIMIT, "a limit was exceeded")                                     \
    XX(7, ENTROPY, "the operating system gave no randomness")                \
    XX(8, NUMERIC, "a number that must be finite is not")                    \
    XX(9, BUDGET, "the privacy budget does not allow this")                  \
    XX(10, STATE, "called in the wrong order")                               \
    XX(11, CANCELLED, "cancelled by the caller")                             \
    XX(12, SYSTEM, "the system failed")

typedef enum dpi_status {
#define DPI_STATUS_ENUM(code, name, text) DPI_STATUS_##name = (code),
    DPI_STATUS_MAP(DPI_STATUS_ENUM) DPI_STATUS_COUNT
#undef DPI_STATUS_ENUM
} dpi_status;

/* offset is the position in the file, in bytes, where the fault was found; UINT64_MAX if the
 * error has no position. message is a NUL-terminated string that names the thing, what was
 * found and what is allowed. */
typedef struct dpi_error {
    int32_t code; /* a dpi_status */
    int32_t reserved;
    uint64_t offset;
    char message[488];
} dpi_error;

DPI_API uint32_t dpi_abi_version(void);
/* Static string such as "0.1.0". */
DPI_API const char *dpi_version(void);
/* Static strings, "unknown" for a code that is not in the list. */
DPI_API const char *dpi_status_name(int32_t status);
DPI_API const char *dpi_status_text(int32_t status);

/* What a system call that failed with this errno says: MEMORY; IO where it is about the path or the
 * file (it is not there, may not be read, is a folder); SYSTEM for the rest, which is about the
 * machine: too many open files, an error of the disk, no space. */
DPI_API dpi_status dpi_status_of_errno(int32_t reason);

/* ---- Callbacks ----------------------------------------------------------------------------- */

/* Called now and then during long work: a non-zero result stops it with status CANCELLED. */
typedef int32_t (*dpi_cancel_fn)(void *user);

/* Source of random bits: fills `buffer` with n_bytes, 0 on success. */
typedef int32_t (*dpi_random_fn)(void *user, void *buffer, size_t n_bytes);

/* A reproducible, insecure random source for tests: set options->random to this and
 * random_user to a uint64_t state that holds the seed. Output is then NOT PRIVATE. */
DPI_API int32_t dpi_random_insecure(void *state, void *buffer, size_t n_bytes);

#ifdef __cplusplus
}
#endif
#endif
