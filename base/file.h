/* file.h - regular files: opened for reading, written whole, kept through a power cut. Internal. */
#ifndef DPI_FILE_H
#define DPI_FILE_H

#include <signal.h>
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

/* A new and empty file beside `path`, open for writing: NAME.part-PID.N, which no file had. The
 * file is the caller's, and *name, for free. -1: errno, and there is neither. */
int dpi_file_make_beside(const char *path, char **name);

/* Signals of this thread wait from hold to release. A program whose handlers go on in this thread,
 * as those of tools/ do, ends before or after, and leaves no temporary file. */
void dpi_file_hold_signals(sigset_t *before);
void dpi_file_release_signals(const sigset_t *before);

/* A file that takes the place of `target` when it is whole. */
typedef struct dpi_new_file {
    int fd;            /* to write to */
    char *target;      /* through symbolic links */
    char *temporary;   /* beside it */
    sigset_t signals;
} dpi_new_file;

/* Signals wait from here on. False: errno, and there is nothing to close. */
bool dpi_new_file_open(dpi_new_file *f, const char *path);
/* On the disk under its name; or, where !whole, gone. False: errno, and it is gone. */
bool dpi_new_file_close(dpi_new_file *f, bool whole);

#endif
