/* verdict.h - what `verify` says of a report: the verdict, and then the fields it rests on, all of
 * them with --verbose, else those that do not hold. */
#ifndef DPI_VERDICT_H
#define DPI_VERDICT_H

#include <stddef.h>
#include <stdio.h>

#include "tools/options/options.h"

typedef struct verdict {
    bool is_verbose;
    size_t n_ok, n_wrong;
    char wrong[256]; /* the names of fields that do not hold, as many as fit */
    FILE *lines;     /* into text */
    char *text;
    size_t n_bytes;
} verdict;

typedef enum verdict_mark { VERDICT_OK, VERDICT_GIVEN, VERDICT_WRONG } verdict_mark;

/* CLI_OK, or CLI_FAILED with a message. */
int verdict_open(verdict *v, const args *a);
/* "  ok     NAME: what the format says" */
void verdict_add(verdict *v, verdict_mark mark, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints "verified: " and what the format says, `label` (NULL: none) and the fields; or how many do
 * not hold, and which. Closes the verdict. CLI_OK, or CLI_FAILED with a message. */
int verdict_tell(verdict *v, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Where nothing is told. */
void verdict_close(verdict *v);

#endif
