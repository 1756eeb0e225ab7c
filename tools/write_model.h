/* write_model.h - what the commands that write model files share. */
#ifndef DPI_WRITE_MODEL_H
#define DPI_WRITE_MODEL_H

#include "tools/options.h"

/* Fills in the options from those of the command: threads, progress on stderr if it is a terminal,
 * and cancelling by SIGINT and SIGTERM, so that no temporary file stays behind. */
void write_model_options(const args *a, const char *type, dpi_write_options *options);

/* Ends the progress line. The exit code for `status`, with a message if it failed. */
int write_model_finish(const dpi_write_options *options, dpi_status status, const dpi_error *err);

#endif
