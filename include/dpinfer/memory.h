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

/* Reads all that is left of the file `fd` (on POSIX systems), if that is at most `most` bytes.
 * 1 and *data, *n_bytes: the caller frees them with dpi_private_free; one more byte, a NUL, follows
 * the data. 0 on failure, with errno, which is EFBIG for more bytes; *data and *n_bytes are as they
 * were. `fd` stays open in both cases. */
DPI_API int32_t dpi_private_read(int fd, size_t most, char **data, size_t *n_bytes);

#ifdef __cplusplus
}
#endif
#endif
