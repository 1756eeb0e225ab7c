/* memory.h - memory for private data: it is wiped before it goes back to the heap. Records are read
 * into such memory alone. */
#ifndef DPINFER_MEMORY_H
#define DPINFER_MEMORY_H

#include "dpinfer/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As malloc, realloc and free. Not interchangeable with these. */
DPI_API void *dpi_private_malloc(size_t n_bytes);
DPI_API void *dpi_private_realloc(void *p, size_t n_bytes);
DPI_API void dpi_private_free(void *p);

/* Room for n entries of `size` bytes in an array that grows: `array` is the address of the pointer
 * to it, *capacity the number of entries that it has room for. At first they are NULL and 0. 1; or
 * 0 without memory, and both are as they were. Free it with dpi_private_free. */
DPI_API int32_t dpi_private_grow(void *array, size_t *capacity, size_t n, size_t size);

/* Reads all that is left of the file `fd` (on POSIX systems), if that is at most `most` bytes.
 * 1 and *data, *n_bytes: the caller frees them with dpi_private_free; one more byte, a NUL, follows
 * the data. 0 on failure, with errno, which is EFBIG for more bytes; *data and *n_bytes are as they
 * were. `fd` stays open in both cases. */
DPI_API int32_t dpi_private_read(int fd, size_t most, char **data, size_t *n_bytes);

#ifdef __cplusplus
}
#endif
#endif
