/* label_options.h - options about labels, and the files that they name. */
#ifndef DPI_LABEL_OPTIONS_H
#define DPI_LABEL_OPTIONS_H

#include "dpinfer/release.h"
#include "tools/options/options.h"

/* The labels of a file, and their texts. */
typedef struct label_input {
    char *content; /* private memory */
    const char **names, **meanings; /* [n]; a meaning NULL: the file has none */
    int32_t *texts; /* NULL: the file has none */
    int32_t n;
} label_input;

/* Into the options of a release, which refer to `in` from then on. attributes: a label is a value
 * of each. CLI_OK or CLI_USAGE; label_options_free in any case. */
int label_options_read(const args *a, bool attributes, label_input *in, dpi_release_options *o);
void label_options_free(label_input *in);

#endif
