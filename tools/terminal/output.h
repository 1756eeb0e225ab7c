/* output.h - files that the program writes. Every byte goes to the system at once: what was
 * written is not lost when the program is stopped, and every failure is seen. A file appears under
 * its name when it is whole; until then it is a temporary one beside it, NAME.part-XXXXXX, or of a
 * job NAME.part- and the ending of all of its files. */
#ifndef DPI_OUTPUT_H
#define DPI_OUTPUT_H

#include "tools/terminal/cli.h"

/* A command that writes files: signals_catch or signals_clean_up (signals.h), paths_check
 * (paths.h), output_open, output_write, output_close. */

enum { OUTPUT_TAIL_BYTES = 512 };

typedef struct output {
    int fd;           /* -1: not open */
    const char *name; /* for messages */
    char *target;     /* the final path; NULL for what is not a regular file */
    char *temporary;  /* what is written to until then, else NULL */
    char *told;       /* what a signal handler says of a temporary file that it leaves */
    bool replaces;    /* a file of that name may be replaced */
    bool appears;     /* on a signal that ends the program it appears, as it would end now: */
    const char *pending; /* with the rest of what is being written, n_pending bytes, */
    size_t n_pending;
    char tail[OUTPUT_TAIL_BYTES]; /* and then with this; so it does after a failure */
    int64_t reserved; /* the disk has room for a regular file up to here */
    bool probes;      /* only whether it could be made */
    bool failed;      /* a write failed, and was reported */
} output;

/* Opens `path` ("-": standard output). Pipes and devices are written to as they are; it waits for
 * the reader of a pipe. replaces: output_close may replace a file of that name. `path` must outlive
 * the output. CLI_OK; CLI_FAILED with a message; or signals_code() where a signal came while it
 * waited. */
int output_open(output *o, const char *path, bool replaces);

/* From now on temporary files are NAME.part-ENDING, and take the place of a file of that name. For
 * a process that holds the lock of a job, which alone has this ending: such a file is what another
 * process of the job has left that was killed. NULL: no longer. */
void output_own_parts(const char *ending);

/* Whether what is written to `path` would be a regular file. */
bool output_is_file(const char *path);

/* CLI_OK if output_open could make a file at `path` now, and leaves nothing behind; pipes and
 * devices are not tried. Else CLI_FAILED with a message. */
int output_probe(const char *path);

/* A note of each temporary file of `path` that a killed program has left; output_open does so
 * itself. */
void output_tell_leftovers(const char *path);

/* Before a charge, for what is written after it: has the disk keep so much room for the file, as
 * far as it can. CLI_OK; CLI_FAILED with a message; CLI_USAGE where it is no regular file. */
int output_reserve(output *o, int64_t n_bytes);

/* CLI_OK, or CLI_FAILED: the message is printed the first time. */
int output_write(output *o, const void *data, size_t n_bytes);
/* output_write; but on a terminal, what would steer it is shown, and not sent (terminal.h). */
int output_show(output *o, const char *text, size_t n_bytes);
/* output_write, after which the file ends with `tail` (fewer than OUTPUT_TAIL_BYTES; "": nothing)
 * if a signal ends the program before the next call. Whenever a signal comes, the file ends with
 * the tail of the call before, or with all of `data` and this one. */
int output_write_part(output *o, const void *data, size_t n_bytes, const char *tail);
/* output_write in the place of `before`, n_before bytes, where the file has not appeared; it has
 * them again after a failure. What is no regular file gets it after that. */
int output_write_anew(output *o, const void *data, size_t n_bytes, const void *before,
                      size_t n_before);

typedef enum output_end {
    OUTPUT_APPEARS, /* under its name */
    OUTPUT_PARTIAL, /* the same, but a file that is there stays, and where this one is is told; if
                     * nothing was written, nothing appears */
    OUTPUT_DROPPED,
} output_end;

/* Closes. Safe on an output that is not open. CLI_OK, or CLI_FAILED if this or an earlier write
 * failed. */
int output_close(output *o, output_end end);

/* output_close, after which a command ends with `code`: that one, or CLI_FAILED where it was
 * CLI_OK. */
int output_finish(output *o, output_end end, int code);

#endif
