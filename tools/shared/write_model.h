/* write_model.h - what the commands that write model files share. */
#ifndef DPI_WRITE_MODEL_H
#define DPI_WRITE_MODEL_H

#include "tools/options/options.h"
#include "tools/terminal/output.h"

typedef struct model_output {
    output file;
    dpi_write_options options;
} model_output;

/* Opens the file `path`, which is none that the command reads, and not there yet but for
 * --overwrite, and fills in the options from those of the command: threads, progress on stderr if
 * it is a terminal, cancelling by signals. *m must not move. CLI_OK, or an exit code with a
 * message. */
int write_model_begin(const args *a, const char *path, const char *type, model_output *m);

/* Ends the progress line; the file appears if it is whole. The exit code for `status`, with a
 * message if it failed. */
int write_model_end(model_output *m, dpi_status status, const dpi_error *err);

#endif
