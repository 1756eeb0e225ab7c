/* output.h - files that the program writes. Every byte goes to the system at once: what was
 * written is not lost when the program is stopped, and every failure is seen. */
#ifndef DPI_OUTPUT_H
#define DPI_OUTPUT_H

#include "tools/cli.h"

typedef struct output {
    int fd;           /* -1: not open */
    const char *name; /* for messages */
    char *target;     /* atomic: the final path, else NULL */
    char *temporary;  /* atomic: what is written to until then */
    bool failed;      /* a write failed, and was reported */
} output;

/* Opens `path` ("-": standard output). Atomic: the file appears, whole, at output_close; not
 * for standard output, pipes and devices, which are written to as they are. `path` must
 * outlive the output. CLI_OK, or CLI_FAILED with a message. */
int output_open(output *o, const char *path, bool atomic);

/* CLI_OK if output_open could make an atomic file at `path` now, and leaves nothing behind; what is
 * not atomic is not tried. Else CLI_FAILED with a message. */
int output_probe(const char *path);

/* CLI_OK, or CLI_FAILED: the message is printed the first time. */
int output_write(output *o, const void *data, size_t n_bytes);

/* Closes. `keep` = false drops an atomic file. Safe on an output that is not open. CLI_OK, or
 * CLI_FAILED if this or an earlier write failed. */
int output_close(output *o, bool keep);

/* Whether both paths lead to the same existing regular file. */
bool output_same_file(const char *a, const char *b);

#endif
