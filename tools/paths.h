/* paths.h - what a command reads and what it writes: no file is written over an input, over another
 * output, or over what is there without being told so. */
#ifndef DPI_PATHS_H
#define DPI_PATHS_H

#include <stdbool.h>

enum { PATHS_MAX = 24 };

/* {0}: none so far. Strings must outlive it. */
typedef struct paths {
    int n_inputs, n_outputs;
    bool too_many;
    const char *input[PATHS_MAX];
    struct {
        const char *option, *path;
    } output[PATHS_MAX];
} paths;

/* A file, a folder, or the first part of a split model that is read. NULL and "-" are none. */
void paths_read(paths *p, const char *path);
/* A file that is written; option: "-o", for messages. NULL is none; "-" is standard output. */
void paths_write(paths *p, const char *option, const char *path);

/* CLI_OK, or CLI_USAGE with a message: an output is an input, or in a folder that is one, or a part
 * of a split model, or another output, by whatever names (device and inode; what is not there yet,
 * by folder and name); or it is a regular file that is there, and may not be replaced. */
int paths_check(const paths *p, bool may_replace);

#endif
