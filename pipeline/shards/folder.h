/* folder.h - files of a job: each is on the disk before the next step. Internal. */
#ifndef DPI_SHARDS_FOLDER_H
#define DPI_SHARDS_FOLDER_H

#include <stddef.h>

#include "dpinfer/status.h"

/* "folder/name", or the folder alone if name is NULL; the caller frees it with free. Errors:
 * MEMORY. */
dpi_status dpi_folder_path(const char *folder, const char *name, char **path, dpi_error *err);

/* A folder that was not there. Errors: STATE (it is there), IO, MEMORY. */
dpi_status dpi_folder_make(const char *path, dpi_error *err);

/* A new file with these bytes, readable by its owner alone. It is whole or not there. Errors: STATE
 * (it is there), IO, MEMORY. */
dpi_status dpi_folder_write(const char *folder, const char *name, const void *bytes, size_t n_bytes,
                            dpi_error *err);

/* The whole file, as dpi_private_read. Errors: IO, and with `secret` UNSUPPORTED: others than its
 * owner can read it. */
dpi_status dpi_folder_read(const char *folder, const char *name, int secret, char **bytes,
                           size_t *n_bytes, dpi_error *err);

/* Takes a file away, if it is there. Errors: IO, MEMORY. */
dpi_status dpi_folder_remove(const char *folder, const char *name, dpi_error *err);
/* A file that was written otherwise, and its name. Errors: IO, MEMORY. */
dpi_status dpi_folder_sync(const char *folder, const char *name, dpi_error *err);

#endif
