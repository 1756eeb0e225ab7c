/* file.h - regular files: opened for reading, written whole, kept through a power cut. Internal. */
#ifndef DPI_FILE_H
#define DPI_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "dpinfer/status.h"

/* A stream for the regular file at `path`, which the caller closes with fclose. A FIFO, which could
 * make the caller wait for ever, and a device, which need not end, are refused. Errors: IO,
 * SYSTEM. */
dpi_status dpi_file_open(const char *path, FILE **file, dpi_error *err);

/* All n_bytes of data, at the place of fd, however few a call of the system writes. False: errno,
 * and some may be written. */
bool dpi_file_write(int fd, const void *data, size_t n_bytes);

/* The names in the folder of the file `path`, on the disk: a file that was made, renamed or removed
 * there is so after a power cut too. True as well where the file system cannot do that. False:
 * errno. */
bool dpi_file_sync_names(const char *path);

#endif
