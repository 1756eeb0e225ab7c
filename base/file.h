/* file.h - regular files, opened for reading. Internal. */
#ifndef DPI_FILE_H
#define DPI_FILE_H

#include <stdio.h>

#include "dpinfer/status.h"

/* A stream for the regular file at `path`, which the caller closes with fclose. A FIFO, which could
 * make the caller wait for ever, and a device, which need not end, are refused. Errors: IO,
 * SYSTEM. */
dpi_status dpi_file_open(const char *path, FILE **file, dpi_error *err);

#endif
