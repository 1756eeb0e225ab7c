/* read_file.h - a whole file into private memory. Internal. */
#ifndef DPI_READ_FILE_H
#define DPI_READ_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* All of fd, to private memory that the caller frees with dpi_private_free. One more byte, a NUL,
 * follows the data. False on failure, with errno. */
bool dpi_read_file(int fd, char **data, size_t *n_bytes);

#endif
